"""Secrets at rest: sealed with keys that are not in the database; whose they are is sealed in."""

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
HOW = "a key is what Fernet.generate_key() of the package cryptography returns"


class BrokenSeal(DroverError):
    """A stored secret cannot be opened: its key is gone, or it was sealed for something else."""

    code = "broken_seal"
    http_status = 500


@dataclass(frozen=True, slots=True)
class Keys:
    """The first one seals; all of them open."""

    all: tuple[str, ...]

    @property
    def first_id(self) -> str:
        return self.ids[0]

    @property
    def ids(self) -> tuple[str, ...]:
        """Tell keys apart without telling anything about them."""
        return tuple(hashlib.sha256(key.encode()).hexdigest()[:16] for key in self.all)

    @property
    def fernet(self) -> MultiFernet:
        return MultiFernet([Fernet(key) for key in self.all])


def read_keys(env: Mapping[str, str], data: Path) -> Keys:
    """The variable, newest first and with commas between, else a file that only we may read."""
    listed = env.get(VARIABLE) or _kept(data / FILE)
    keys = Keys(tuple(key.strip() for key in listed.replace("\n", ",").split(",") if key.strip()))
    place = VARIABLE if env.get(VARIABLE) else str(data / FILE)
    for number, key in enumerate(keys.all, start=1):
        try:
            Fernet(key)
        except ValueError:
            # The message does not repeat the text: part of it may be a valid key.
            problem = f"{place}: key {number} is not a valid Fernet key"
            raise ConfigError(f"{problem}; {HOW}") from None
    return keys


@lru_cache(maxsize=1)
def keys() -> Keys:
    return read_keys(os.environ, CONF.data)


def keys_again() -> Keys:
    """A new one may have come since this process read them."""
    keys.cache_clear()
    return keys()


def add_key(env: Mapping[str, str], data: Path) -> None:
    """A new one before the others, in the file; whoever keeps them elsewhere adds it there."""
    if env.get(VARIABLE):
        raise ConfigError(f"the keys are in {VARIABLE}: put a new one first, there; {HOW}")
    listed = _kept(data / FILE)
    write_private(data / FILE, f"{Fernet.generate_key().decode()}\n{listed}")


def seal(keys: Keys, tenant_id: int, name: str, secret: str) -> str:
    return keys.fernet.encrypt(json.dumps([tenant_id, name, secret]).encode()).decode()


def unseal(keys: Keys, sealed: str, tenant_id: int, name: str) -> str:
    """Only for whom it was sealed: a row's text copied into another row opens nothing."""
    try:
        of_tenant, of_name, secret = json.loads(keys.fernet.decrypt(sealed))
    except (InvalidToken, ValueError):
        raise BrokenSeal(
            f"the secret {name!r} cannot be opened: put its key back, behind the newest one, in "
            f"{VARIABLE}, or give the secret again"
        ) from None
    if (of_tenant, of_name) != (tenant_id, name):
        raise BrokenSeal(f"the secret {name!r} was sealed for another name or tenant")
    return str(secret)


def unseal_kept(sealed: str, tenant_id: int, name: str) -> str:
    """With the keys of this installation, as they are now."""
    try:
        return unseal(keys(), sealed, tenant_id, name)
    except BrokenSeal:
        return unseal(keys_again(), sealed, tenant_id, name)


def reseal(keys: Keys, sealed: str) -> str:
    """The same secret under the first key, so that an old one is no longer needed."""
    try:
        return keys.fernet.rotate(sealed).decode()
    except InvalidToken:
        raise BrokenSeal(f"a secret cannot be opened with any key of {VARIABLE}") from None


def _kept(path: Path) -> str:
    try:
        return read_or_create_private(path, Fernet.generate_key().decode())
    except OSError as error:
        raise ConfigError(f"{path} cannot be used: {error.strerror}; or set {VARIABLE}") from None
