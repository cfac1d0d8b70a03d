"""Payloads of notices about runs and rules, and their signature; pure."""

import base64
import json
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Literal

from agents_app.webhooks.providers import mac, raw

Format = Literal["json", "slack"]
FAILURES = ("run.failed", "run.timed_out", "run.lost", "run.dead")
RULE_EVENTS = ("rule.failed", "rules.invalid", "rules.disabled")
EVENTS = ("run.started", "run.succeeded", *FAILURES, "run.stopped", *RULE_EVENTS)
# Sent to every target, whatever its events are: a hook of an agent asks for it.
ANNOUNCED = "run.notified"
WHSEC = "whsec_"


@dataclass(frozen=True, slots=True)
class Notice:
    """One event of a run or a rule; the id is the same in each attempt to send it."""

    id: int
    name: str
    at: datetime
    detail: str
    agent: str
    run_id: int | None
    trigger: str = ""
    attempt: int = 1
    exit_code: int | None = None
    url: str = ""


def build_body(notice: Notice, form: str) -> bytes:
    return json.dumps({"text": _sentence(notice)} if form == "slack" else _event(notice)).encode()


def build_headers(notice: Notice, body: bytes, secret: str, now: datetime) -> dict[str, str]:
    """The headers of Standard Webhooks; without a secret there is no signature."""
    identity, sent = f"drover-event-{notice.id}", str(int(now.timestamp()))
    headers = {
        "Content-Type": "application/json",
        "webhook-id": identity,
        "webhook-timestamp": sent,
    }
    if secret:
        message = b".".join((raw(identity), raw(sent), body))
        headers["webhook-signature"] = f"v1,{mac(_key(secret), message, 'base64').decode()}"
    return headers


def _key(secret: str) -> bytes:
    written = secret.removeprefix(WHSEC)
    try:
        return base64.b64decode(raw(written), validate=True) or raw(written)
    except ValueError:
        return raw(written)


def _event(notice: Notice) -> Mapping[str, Any]:
    return {
        "type": notice.name,
        "timestamp": notice.at.isoformat(),
        "data": {
            "run_id": notice.run_id,
            "agent": notice.agent,
            "trigger": notice.trigger,
            "attempt": notice.attempt,
            "exit_code": notice.exit_code,
            # The message of a hook is not an error.
            "error": "" if notice.name == ANNOUNCED else notice.detail,
            **({"message": notice.detail} if notice.name == ANNOUNCED else {}),
            "url": notice.url,
        },
    }


def _sentence(notice: Notice) -> str:
    """Slack reads `<`, `>` and `&` as markup: an error message must not notify a whole channel."""
    what = notice.name.removeprefix("run.").replace("_", " ").replace(".", " ")
    what = f"{notice.agent}: run {notice.run_id} {what}" if notice.run_id else what
    if notice.name == ANNOUNCED:
        what = f"{notice.agent}: run {notice.run_id}"
    text = f"{what}: {notice.detail}" if notice.detail else what
    for char, written in (("&", "&amp;"), ("<", "&lt;"), (">", "&gt;")):
        text = text.replace(char, written)
    return f"{text} {notice.url}".strip()
