"""The key that signs sessions: made once per installation, kept out of the database."""

import os
import secrets
from pathlib import Path

from agents_app.errors import ConfigError
from agents_app.installation.private_files import read_or_create_private


def read_secret_key(data: Path) -> str:
    """DROVER_SECRET_KEY, else a file in the data directory that only its owner may read."""
    if from_environment := os.environ.get("DROVER_SECRET_KEY"):
        return from_environment
    path = data / "secret_key"
    try:
        return read_or_create_private(path, secrets.token_urlsafe(50)).strip()
    except OSError as error:
        raise ConfigError(
            f"the data directory {data} cannot be used: {error.strerror}. "
            "Make it writable, or set DROVER_DATA to another directory."
        ) from None
