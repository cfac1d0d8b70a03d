"""Makes a backup while Drover runs."""

import os
import tempfile
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

from agents_app import __version__
from agents_app.backups import postgres_dump, sqlite_copy
from agents_app.backups.archive import (
    DATABASES,
    FORMAT,
    KEYS,
    STATE,
    BackupManifest,
    digest_of,
    write_archive,
)
from agents_app.backups.failures import refuse_failures
from agents_app.backups.sealing import seal
from agents_app.backups.state import pack_state
from agents_app.conf import Conf, database_settings
from agents_app.database import ENGINE
from agents_app.errors import Refused

# Files of the data directory, and the variable that is used instead of the file.
KEY_FILES = {
    "credential_keys": "DROVER_CREDENTIAL_KEYS",
    "secret_key": "DROVER_SECRET_KEY",
    "redis.password": "",
}


@dataclass(frozen=True, slots=True)
class BackupResult:
    file: str
    manifest: BackupManifest
    # Files of agents that are no regular files, or that this user may not read.
    left_out: list[str]
    # Variables that have keys which are therefore not in the backup.
    variables: list[str]


def create_backup(conf: Conf, target: Path, passphrase: str, now: datetime) -> BackupResult:
    if not target.parent.is_dir():
        raise Refused(f"{target.parent} is not a directory: create it first")
    if target.exists():
        raise Refused(f"{target} exists: choose another name, or remove it")
    # Beside the target: it must have enough space anyway.
    with (
        refuse_failures(f"the backup cannot be written to {target}", "no backup was made"),
        tempfile.TemporaryDirectory(prefix=".drover-backup-", dir=target.parent) as directory,
    ):
        staging = Path(directory)
        counts, schema = _copy_database(conf, staging / DATABASES[ENGINE.name])
        state_files, left_out = pack_state(conf.data / "state", staging / STATE)
        digests = {name: digest_of(staging / name) for name in (DATABASES[ENGINE.name], STATE)}
        # With the digests: a database cannot be exchanged without the passphrase.
        sealed = seal({"files": _read_keys(conf.data), "digests": digests}, passphrase)
        (staging / KEYS).write_bytes(sealed)
        digests[KEYS] = digest_of(staging / KEYS)
        manifest = BackupManifest(
            format=FORMAT,
            drover_version=__version__,
            created_at=now.isoformat(),
            engine=ENGINE.name,
            schema=schema,
            counts=counts,
            state_files=state_files,
            members=digests,
        )
        write_archive(staging, manifest, target)
    variables = [name for name in KEY_FILES.values() if name and os.environ.get(name)]
    return BackupResult(str(target), manifest, left_out, variables)


def _copy_database(conf: Conf, target: Path) -> tuple[dict[str, int], list[str]]:
    if (file := ENGINE.file()) is None:
        return postgres_dump.dump_database(database_settings(conf.database_url), target)
    sqlite_copy.copy_database(file, target)
    return sqlite_copy.count_rows(target), sqlite_copy.read_migrations(target)


def _read_keys(data: Path) -> dict[str, str]:
    return {name: (data / name).read_text() for name in KEY_FILES if (data / name).is_file()}
