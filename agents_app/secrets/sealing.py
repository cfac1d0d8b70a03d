"""Encrypts secrets at rest, bound to tenant and name, with keys outside of the database."""

import hashlib
import json
import os
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

from cryptography.fernet import Fernet, InvalidToken, MultiFernet

from agents_app.conf import CONF
from agents_app.errors import ConfigError, DroverError
from agents_app.installation import read_or_create_private, write_private

VARIABLE = "DROVER_CREDENTIAL_KEYS"
FILE = "credential_keys"
_KEY_HINT = "a key is what Fernet.generate_key() of the package cryptography returns"


class BrokenSeal(DroverError):
    """A stored secret cannot be decrypted: its key is missing, or it belongs to another row."""

    code = "broken_seal"
    http_status = 500


@dataclass(frozen=True, slots=True)
class Keys:
    """The first key encrypts; all keys decrypt."""

    all: tuple[str, ...]

    @property
    def first_id(self) -> str:
        return self.ids[0]

    @property
    def ids(self) -> tuple[str, ...]:
        """Identifiers of the keys that do not reveal them."""
        return tuple(hashlib.sha256(key.encode()).hexdigest()[:16] for key in self.all)

    @property
    def fernet(self) -> MultiFernet:
        return MultiFernet([Fernet(key) for key in self.all])


def read_keys(env: Mapping[str, str], data: Path) -> Keys:
    """The keys of the variable, newest first, separated by commas; else of a private file."""
    listed = env.get(VARIABLE) or _kept(data / FILE)
    keys = Keys(tuple(key.strip() for key in listed.replace("\n", ",").split(",") if key.strip()))
    place = VARIABLE if env.get(VARIABLE) else str(data / FILE)
    for number, key in enumerate(keys.all, start=1):
        try:
            Fernet(key)
        except ValueError:
            # The message does not repeat the text: part of it may be a valid key.
            problem = f"{place}: key {number} is not a valid Fernet key"
            raise ConfigError(f"{problem}; {_KEY_HINT}") from None
    return keys


@lru_cache(maxsize=1)
def keys() -> Keys:
    return read_keys(os.environ, CONF.data)


def reload_keys() -> Keys:
    """Read the keys again: another process may have added one."""
    keys.cache_clear()
    return keys()


def add_key(env: Mapping[str, str], data: Path) -> None:
    """Put a new key first in the file; refused if the keys are in the variable."""
    if env.get(VARIABLE):
        raise ConfigError(f"the keys are in {VARIABLE}: put a new key first there; {_KEY_HINT}")
    listed = _kept(data / FILE)
    write_private(data / FILE, f"{Fernet.generate_key().decode()}\n{listed}")


def seal(keys: Keys, tenant_id: int, name: str, secret: str) -> str:
    return keys.fernet.encrypt(json.dumps([tenant_id, name, secret]).encode()).decode()


def unseal(keys: Keys, sealed: str, tenant_id: int, name: str) -> str:
    """Decrypt a secret; a value that was copied from another row is refused."""
    try:
        of_tenant, of_name, secret = json.loads(keys.fernet.decrypt(sealed))
    except (InvalidToken, ValueError):
        raise BrokenSeal(
            f"the secret {name!r} cannot be decrypted: add its key after the newest one in "
            f"{VARIABLE}, or set the secret again"
        ) from None
    if (of_tenant, of_name) != (tenant_id, name):
        raise BrokenSeal(f"the secret {name!r} was sealed for another name or tenant")
    return str(secret)


def unseal_stored(sealed: str, tenant_id: int, name: str) -> str:
    """Decrypt with the keys of this installation, which are read again if they do not fit."""
    try:
        return unseal(keys(), sealed, tenant_id, name)
    except BrokenSeal:
        return unseal(reload_keys(), sealed, tenant_id, name)


def reseal(keys: Keys, sealed: str) -> str:
    """Encrypt a sealed secret again with the first key."""
    try:
        return keys.fernet.rotate(sealed).decode()
    except InvalidToken:
        raise BrokenSeal(f"a secret cannot be decrypted with any key of {VARIABLE}") from None


def _kept(path: Path) -> str:
    try:
        return read_or_create_private(path, Fernet.generate_key().decode())
    except OSError as error:
        raise ConfigError(f"{path} cannot be used: {error.strerror}; or set {VARIABLE}") from None
