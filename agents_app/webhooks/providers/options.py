"""Reads and checks the options of a webhook source; only some providers have options."""

from collections.abc import Mapping
from dataclasses import dataclass, fields
from datetime import datetime
from difflib import get_close_matches
from typing import Any

from agents_app.errors import ConfigError
from agents_app.webhooks.providers.signing import (
    Encoding,
    Secrets,
    Signed,
    named_by_token,
    signed_by_mac,
)

ENCODINGS: tuple[Encoding, ...] = ("hex", "base64")


@dataclass(frozen=True, slots=True, kw_only=True)
class SignatureOptions:
    """The header with the HMAC of the body, its prefix and its encoding."""

    headers: tuple[str, ...] = ("x-signature",)
    prefix: str = ""
    encoding: Encoding = "hex"

    def verify(self, request: Signed, secrets: Secrets, now: datetime) -> str | None:
        del now
        given = request.header(*self.headers)
        return signed_by_mac(secrets, request.body, given, self.prefix, self.encoding)


@dataclass(frozen=True, slots=True, kw_only=True)
class GenericOptions:
    signature: SignatureOptions = SignatureOptions()
    secret_in_path: bool = False
    delivery_header: str = "x-delivery-id"
    event_path: tuple[str, ...] = ("event",)

    def verify(self, request: Signed, secrets: Secrets, now: datetime) -> str | None:
        if not self.secret_in_path:
            return self.signature.verify(request, secrets, now)
        return named_by_token(secrets, request.path_secret)


def signature_options(table: Mapping[str, Any], default: SignatureOptions) -> SignatureOptions:
    refuse_unknown(table, ("header", "prefix", "encoding"))
    header, encoding = text_option(table, "header"), table.get("encoding", default.encoding)
    if encoding not in ENCODINGS:
        raise ConfigError(f"encoding: must be {' or '.join(ENCODINGS)}, not {encoding!r}")
    return SignatureOptions(
        headers=(header.lower(),) if header else default.headers,
        prefix=text_option(table, "prefix") or default.prefix,
        encoding=encoding,
    )


def generic_options(table: Mapping[str, Any]) -> GenericOptions:
    own = {field.name for field in fields(GenericOptions)} - {"signature"}
    of_signature = {name: value for name, value in table.items() if name not in own}
    refuse_unknown(table, ("header", "prefix", "encoding", *sorted(own)))
    in_path = table.get("secret_in_path", False)
    if not isinstance(in_path, bool):
        raise ConfigError(f"secret_in_path: must be true or false, not {in_path!r}")
    default = GenericOptions()
    path = text_option(table, "event_path")
    return GenericOptions(
        signature=signature_options(of_signature, default.signature),
        secret_in_path=in_path,
        delivery_header=(text_option(table, "delivery_header") or default.delivery_header).lower(),
        event_path=tuple(path.removeprefix("$.").split(".")) if path else default.event_path,
    )


def refuse_unknown(table: Mapping[str, Any], known: tuple[str, ...]) -> None:
    for name in table:
        if name not in known:
            close = get_close_matches(name, known, n=1)
            hint = (
                f"did you mean {close[0]!r}?" if close else f"known: {', '.join(known) or 'none'}"
            )
            raise ConfigError(f"{name}: unknown option; {hint}")


def text_option(table: Mapping[str, Any], name: str) -> str:
    value = table.get(name, "")
    if not isinstance(value, str):
        raise ConfigError(f"{name}: must be text, not {value!r}")
    return value
