"""Writes files that must not exist yet."""

from collections.abc import Mapping
from pathlib import Path

from agents_app.errors import Refused


def write_new(root: Path, texts: Mapping[str, str]) -> list[str]:
    """Write each text below the directory and return the paths; an existing file is never changed.

    All paths are checked first, so that a refusal leaves nothing half written.
    """
    if taken := [path for path in texts if (root / path).exists()]:
        raise Refused(f"{root} already has {', '.join(taken)}: nothing was written")
    for path, text in texts.items():
        try:
            (root / path).parent.mkdir(parents=True, exist_ok=True)
            # Mode x: a file that another process creates meanwhile is not overwritten either.
            with (root / path).open("x", encoding="utf-8") as file:
                file.write(text)
        except OSError as error:
            raise Refused(
                f"cannot write {root / path}: {error.strerror}. "
                "Choose a directory that this user may write to."
            ) from None
    return list(texts)
