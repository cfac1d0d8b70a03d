"""agents/.imported.json: which agent came from where, and the hashes of what was written."""

import hashlib
import json
import os
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from agents_app.errors import Refused
from agents_app.names import agent_name_problem

FILE = ".imported.json"
_VERSION = 1


@dataclass(slots=True)
class ManifestEntry:
    """An agent that an import has written; `files` has a hash for each file name."""

    name: str
    enabled: bool
    files: dict[str, str] = field(default_factory=dict)


@dataclass(slots=True)
class Manifest:
    """The entries by source and key."""

    sources: dict[str, dict[str, ManifestEntry]] = field(default_factory=dict)

    def of(self, source: str) -> dict[str, ManifestEntry]:
        return self.sources.setdefault(source, {})

    def names_of_others(self, source: str) -> set[str]:
        return {
            entry.name
            for other, entries in self.sources.items()
            if other != source
            for entry in entries.values()
        }

    def as_text(self) -> str:
        sources = {
            source: {
                key: {"agent": entry.name, "enabled": entry.enabled, "files": entry.files}
                for key, entry in sorted(entries.items())
            }
            for source, entries in sorted(self.sources.items())
            if entries
        }
        return json.dumps({"version": _VERSION, "sources": sources}, indent=2) + "\n"


def hash_of(text: str | bytes) -> str:
    data = text.encode() if isinstance(text, str) else text
    return hashlib.sha256(data).hexdigest()


def read_manifest(agents: Path) -> Manifest:
    """The manifest of a project; empty if there is none, and refused if it is damaged."""
    path = agents / FILE
    try:
        data = path.read_bytes()
    except FileNotFoundError:
        return Manifest()
    try:
        return Manifest(
            {
                str(source): {str(key): _entry(entry) for key, entry in entries.items()}
                for source, entries in json.loads(data)["sources"].items()
            }
        )
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
        advice = "restore it, or delete it to import everything under new names"
        raise Refused(f"{path} is damaged: {advice}") from None


def _entry(entry: dict[str, Any]) -> ManifestEntry:
    files = {str(name): str(digest) for name, digest in entry["files"].items()}
    name = str(entry["agent"])
    # The name becomes a path: a manifest of another person must not lead out of the project.
    if agent_name_problem(name):
        raise ValueError(name)
    return ManifestEntry(name, bool(entry["enabled"]), files)


def replace_file(path: Path, text: str) -> None:
    """Write the file in one step, so that no process reads an incomplete file."""
    draft = path.with_name(f".{path.name}.{os.getpid()}.new")
    draft.unlink(missing_ok=True)
    handle = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW, 0o644)
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(text.encode())
        draft.replace(path)
    except BaseException:
        draft.unlink(missing_ok=True)
        raise
