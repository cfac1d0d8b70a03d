"""The file of a backup: a tar of a manifest, a database, sealed keys and state directories."""

import contextlib
import hashlib
import json
import os
import tarfile
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from agents_app.errors import Refused
from agents_app.installation import create_private_file

FORMAT = 1
MANIFEST, KEYS, STATE = "manifest.json", "keys.sealed", "state.tar"
DATABASES = {"sqlite": "database.sqlite3", "postgresql": "database.dump"}
_MOST_MANIFEST_BYTES = 10_000_000


@dataclass(frozen=True, slots=True)
class BackupManifest:
    """What a backup contains; `members` has the SHA-256 of each file in it."""

    format: int
    drover_version: str
    created_at: str
    engine: str
    schema: list[str]
    counts: dict[str, int]
    state_files: int
    members: dict[str, str]


def digest_of(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def write_archive(staging: Path, manifest: BackupManifest, target: Path) -> None:
    """Write the file aside and rename it when it is on the disk: `target` is never incomplete."""
    (staging / MANIFEST).write_text(json.dumps(asdict(manifest), indent=1), encoding="utf-8")
    draft = target.with_name(f".{target.name}.{os.getpid()}")
    draft.unlink(missing_ok=True)
    try:
        with os.fdopen(create_private_file(draft), "wb") as file:
            with tarfile.open(fileobj=file, mode="w", format=tarfile.PAX_FORMAT) as tar:
                for name in (MANIFEST, *manifest.members):
                    tar.add(staging / name, arcname=name)
            file.flush()
            os.fsync(file.fileno())
        draft.replace(target)
    finally:
        draft.unlink(missing_ok=True)
    sync_directory(target.parent)


def sync_directory(directory: Path) -> None:
    descriptor = os.open(directory, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def extract_archive(source: Path, staging: Path) -> BackupManifest:
    """Extract the members that the manifest names, and compare each with its SHA-256."""
    with _readable(source), tarfile.open(source, "r:") as tar:
        members = {each.name: each for each in tar.getmembers() if each.isreg()}
        manifest = _read_manifest(tar, members, source)
        for name, expected in manifest.members.items():
            if name not in members or Path(name).name != name:
                raise Refused(f"{source} is incomplete: {name} is missing; nothing was changed")
            tar.extract(members[name], staging, filter="data")
            if digest_of(staging / name) != expected:
                raise Refused(f"{source} was altered: {name} differs; nothing was changed")
    return manifest


@contextlib.contextmanager
def _readable(source: Path) -> Iterator[None]:
    try:
        yield
    except (tarfile.TarError, EOFError) as error:
        raise Refused(
            f"{source} is incomplete or is no backup of Drover ({error}); nothing was changed"
        ) from None


def _read_manifest(
    tar: tarfile.TarFile, members: Mapping[str, tarfile.TarInfo], source: Path
) -> BackupManifest:
    found = members.get(MANIFEST)
    file = tar.extractfile(found) if found and found.size <= _MOST_MANIFEST_BYTES else None
    try:
        values: Any = json.load(file) if file else None
        if isinstance(values, dict) and values.get("format") != FORMAT:
            raise Refused(
                f"{source} has the format {values.get('format')!r}, this version reads {FORMAT}: "
                "restore it with the version of Drover that made it"
            )
        manifest = BackupManifest(**values)
    except (TypeError, ValueError, UnicodeDecodeError):
        raise Refused(f"{source} is no backup of Drover: it has no valid {MANIFEST}") from None
    if set(manifest.members) != {DATABASES.get(manifest.engine), KEYS, STATE}:
        raise Refused(f"{source} is incomplete: its {MANIFEST} does not name all members")
    return manifest
