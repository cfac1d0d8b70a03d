"""Key files sealed with a passphrase: scrypt makes the key, Fernet encrypts and authenticates."""

import base64
import json
import secrets
from collections.abc import Mapping
from typing import Any

from cryptography.fernet import Fernet, InvalidToken
from cryptography.hazmat.primitives.kdf.scrypt import Scrypt

from agents_app.errors import Refused

SHORTEST_PASSPHRASE = 8
# 64 MB and about 0.2 s for each guess.
_COST = {"n": 2**16, "r": 8, "p": 1}
_SALT_BYTES = 16


def seal(value: Mapping[str, Any], passphrase: str) -> bytes:
    if len(passphrase) < SHORTEST_PASSPHRASE:
        raise Refused(f"the passphrase is too short: use at least {SHORTEST_PASSPHRASE} characters")
    salt = secrets.token_bytes(_SALT_BYTES)
    return salt + _fernet(passphrase, salt).encrypt(json.dumps(value).encode())


def unseal(sealed: bytes, passphrase: str) -> dict[str, Any]:
    salt, token = sealed[:_SALT_BYTES], sealed[_SALT_BYTES:]
    try:
        text = _fernet(passphrase, salt).decrypt(token)
    except InvalidToken:
        raise Refused(
            "the passphrase does not open the keys of this backup; nothing was changed"
        ) from None
    opened: dict[str, Any] = json.loads(text)
    return opened


def _fernet(passphrase: str, salt: bytes) -> Fernet:
    key = Scrypt(salt=salt, length=32, **_COST).derive(passphrase.encode())
    return Fernet(base64.urlsafe_b64encode(key))
