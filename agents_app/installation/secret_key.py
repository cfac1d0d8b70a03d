"""The key that signs sessions: made once per installation, kept out of the database."""

import contextlib
import os
import secrets
from pathlib import Path

from agents_app.errors import ConfigError


def read_secret_key(data: Path) -> str:
    """DROVER_SECRET_KEY, else a file in the data directory that only its owner may read."""
    if from_environment := os.environ.get("DROVER_SECRET_KEY"):
        return from_environment
    path = data / "secret_key"
    try:
        with contextlib.suppress(FileNotFoundError):
            return path.read_text().strip()
        return _make(path)
    except OSError as error:
        raise ConfigError(
            f"the data directory {data} cannot be used: {error.strerror}. "
            "Make it writable, or point DROVER_DATA elsewhere."
        ) from None


def _make(path: Path) -> str:
    path.parent.mkdir(parents=True, exist_ok=True)
    draft = path.with_name(f"{path.name}.{os.getpid()}")
    descriptor = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
    with os.fdopen(descriptor, "w") as file:
        file.write(secrets.token_urlsafe(50))
    try:
        # link, not rename: of several processes that start at once the first one's key counts.
        os.link(draft, path)
    except FileExistsError:
        pass
    finally:
        draft.unlink()
    return path.read_text().strip()
