"""Discord interactions: Ed25519 over timestamp and body; Discord checks that a wrong signature
is refused."""

from datetime import datetime
from typing import Any

from agents_app.webhooks.providers import ed25519
from agents_app.webhooks.providers.context import Context
from agents_app.webhooks.providers.filters import FilterField, filter_on
from agents_app.webhooks.providers.provider import MEGABYTE, Provider, usable_id
from agents_app.webhooks.providers.reading import dig, first, iso, items, read_json, text, whole
from agents_app.webhooks.providers.signing import Headers, Secrets, Signed, is_fresh, matching, raw

PING = PONG = 1
_EVENTS = {2: "application_command", 3: "message_component", 4: "autocomplete", 5: "modal_submit"}
_COMMANDS = {"application_command", "autocomplete"}


def verify(request: Signed, secrets: Secrets, now: datetime) -> str | None:
    """Discord defines no limit on the age; `stale` adds one."""
    del now
    sent = request.header("x-signature-timestamp")
    signature = _bytes_of(request.header("x-signature-ed25519"), 64)
    if not sent or signature is None:
        return None
    message = raw(sent) + request.body

    def signs(public_key: str) -> bool:
        key = _bytes_of(public_key, 32)
        return key is not None and ed25519.verify(key, signature, message)

    return matching(secrets, signs)


def stand_in(secret: str) -> str:
    del secret
    return ed25519.STAND_IN_KEY.hex()


def _bytes_of(digits: str, length: int) -> bytes | None:
    try:
        return bytes.fromhex(digits) if len(digits) == 2 * length else None
    except ValueError:
        return None


def stale(request: Signed, now: datetime) -> bool:
    return not is_fresh(request.header("x-signature-timestamp"), now)


def delivery_id(headers: Headers, body: bytes) -> str:
    del headers
    return usable_id(text(read_json(body), "id"), body)


def answer(payload: Any) -> dict[str, Any] | None:
    return {"type": PONG} if whole(payload, "type") == PING else None


def parse(headers: Headers, payload: Any, received_at: datetime) -> Context | None:
    del headers
    event = _EVENTS.get(whole(payload, "type") or 0)
    if event is None:
        return None
    name = first(text(payload, "data", "name"), text(payload, "data", "custom_id"), event)
    user = dig(payload, "member", "user") or dig(payload, "user")
    return Context(
        source="discord",
        event=event,
        action=name,
        title=name,
        body=_options(payload) if event == "application_command" else None,
        repo=text(payload, "guild_id") or "",
        branch=text(payload, "channel_id") or "",
        sender=text(user, "username") or "unknown",
        timestamp=iso(received_at),
    )


def _options(payload: Any) -> str | None:
    lines = [
        f"{name}: {value}"
        for option in items(payload, "data", "options")
        if (name := text(option, "name")) and (value := _value(option)) is not None
    ]
    return text("\n".join(lines))


def _value(option: Any) -> str | None:
    value = dig(option, "value")
    return str(value) if isinstance(value, str | int | float) else None


def _command(context: Context) -> list[str]:
    return [context.title] if context.event in _COMMANDS and context.title else []


DISCORD = Provider(
    name="discord",
    verify=verify,
    stand_in=stand_in,
    stale=stale,
    delivery_id=delivery_id,
    parse=parse,
    answer=answer,
    parses_early=True,
    body_limit_bytes=MEGABYTE,
    # An interaction without an answer within 3 s has failed.
    sends_again=False,
    filters={
        "events": filter_on("event"),
        "guilds": filter_on("repo"),
        "channels": filter_on("branch", absent_passes=True),
        "commands": FilterField(_command, "command"),
    },
)
