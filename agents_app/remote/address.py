"""Where a remote Drover is and the token for it, from the environment; pure but for token files."""

import ipaddress
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urlsplit

from agents_app.errors import ConfigError

URL, TOKEN, TOKEN_FILE = "DROVER_URL", "DROVER_TOKEN", "DROVER_TOKEN_FILE"
TO_NAME_ONE = (
    "set DROVER_TOKEN, or name a file: --token-file FILE (`drover token create NAME` on the "
    "machine of that Drover makes a token)"
)
OTHERS_MAY_READ = 0o077


@dataclass(frozen=True, slots=True)
class Address:
    """Where a remote Drover is, and the token for it."""

    url: str
    token: str
    # What to tell the user about the address and the token.
    warnings: tuple[str, ...] = ()


def read_address(env: Mapping[str, str]) -> Address:
    url = _read_url(env[URL])
    warnings = []
    parts = urlsplit(url)
    if parts.scheme == "http" and not _is_loopback(parts.hostname or ""):
        warnings.append(
            f"warning: {url} is not encrypted: the token crosses the network in clear text. "
            "Use https"
        )
    token = env.get(TOKEN, "").strip()
    if not token and (file := env.get(TOKEN_FILE, "")):
        token, warning = _read_file(Path(file))
        warnings += [warning] if warning else []
    if not token:
        raise ConfigError(f"there is no token for {url}: {TO_NAME_ONE}")
    if not (token.isascii() and token.isprintable() and " " not in token):
        raise ConfigError(f"the token for {url} has characters that no token has: {TOKEN}")
    return Address(url, token, tuple(warnings))


def _read_url(text: str) -> str:
    """The address of Drover, without `/v1`."""
    url = text.strip().rstrip("/")
    wanted = f"{text!r} is not the address of a Drover: expected for example https://drover.example"
    try:
        parts = urlsplit(url)
        valid = parts.scheme in {"http", "https"} and bool(parts.hostname) and parts.port != 0
    except ValueError:
        valid = False
    if not valid or parts.query or parts.fragment:
        raise ConfigError(wanted)
    if parts.username or parts.password:
        raise ConfigError(f"{URL} must not contain a user: the token says who you are")
    return url.removesuffix("/v1")


def _read_file(path: Path) -> tuple[str, str]:
    """The token, and a warning if other users may read it."""
    try:
        token = path.read_text().strip()
        mode = path.stat().st_mode
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "it is not text"
        raise ConfigError(f"the token file {path} cannot be read: {reason}") from None
    if not token:
        raise ConfigError(f"the token file {path} is empty")
    may_read = path.is_file() and mode & OTHERS_MAY_READ
    warning = f"warning: other users may read {path}: chmod 600 {path}" if may_read else ""
    return token, warning


def _is_loopback(host: str) -> bool:
    if host == "localhost" or host.endswith(".localhost"):
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False
