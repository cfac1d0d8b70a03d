"""Compares signatures in constant time and tries every secret."""

import base64
import hashlib
import hmac
import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime
from itertools import islice
from typing import Literal

Headers = Mapping[str, str]
Secrets = Mapping[str, str]
Encoding = Literal["hex", "base64"]

WINDOW_SECONDS = 300
MAX_SIGNATURES = 8
_UNIX_SECONDS = re.compile(r"[0-9]{1,12}")


@dataclass(frozen=True, slots=True)
class Signed:
    """A received request: header names in lower case, and the unparsed body."""

    headers: Headers
    body: bytes
    path_secret: str = ""

    def header(self, *names: str) -> str:
        return next((found for name in names if (found := self.headers.get(name))), "")


def raw(text: str) -> bytes:
    """The bytes of any text of a header or an option, also of lone surrogates."""
    return text.encode("utf-8", "surrogatepass")


def mac(secret: bytes, message: bytes, encoding: Encoding = "hex") -> bytes:
    digest = hmac.new(secret, message, hashlib.sha256).digest()
    return base64.b64encode(digest) if encoding == "base64" else digest.hex().encode()


def matching(secrets: Secrets, signs: Callable[[str], bool]) -> str | None:
    """The name of the first secret that matches; tries all, so that the time reveals nothing."""
    found = None
    for name, secret in secrets.items():
        if signs(secret) and found is None and secret:  # an empty secret never matches
            found = name
    return found


def signed_by_mac(
    secrets: Secrets,
    message: bytes,
    given: str,
    prefix: str = "",
    encoding: Encoding = "hex",
) -> str | None:
    def signs(secret: str) -> bool:
        expected = raw(prefix) + mac(raw(secret), message, encoding)
        return hmac.compare_digest(expected, raw(given))

    return matching(secrets, signs)


def signed_by_any_mac(secrets: Secrets, message: bytes, given: Iterable[str]) -> str | None:
    """One of several signatures is enough: a sender whose secret changes signs with both."""
    signatures = [raw(each) for each in islice(given, MAX_SIGNATURES)]

    def signs(secret: str) -> bool:
        expected, found = mac(raw(secret), message), False
        for each in signatures:  # all, so that the time does not reveal which one is valid
            found |= hmac.compare_digest(expected, each)
        return found

    return matching(secrets, signs)


def named_by_token(secrets: Secrets, given: str) -> str | None:
    """The name of the secret that the request contains as it is.

    The hashes are compared, so that the time does not reveal the length of a secret."""
    digest = hashlib.sha256(raw(given)).digest()
    return matching(
        secrets, lambda secret: hmac.compare_digest(hashlib.sha256(raw(secret)).digest(), digest)
    )


def unix_seconds(text: str) -> int | None:
    return int(text) if _UNIX_SECONDS.fullmatch(text) else None


def is_fresh(text: str, now: datetime, window_seconds: float = WINDOW_SECONDS) -> bool:
    sent = unix_seconds(text)
    return sent is not None and abs(int(now.timestamp()) - sent) <= window_seconds


def body_hash(body: bytes) -> str:
    return "sha256:" + hashlib.sha256(body).hexdigest()
