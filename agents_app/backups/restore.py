"""Restores a backup: everything is extracted and checked aside, then put in place."""

import errno
import shutil
import tempfile
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any

from django.apps import apps
from django.db import connection

from agents_app.backups import postgres_dump, sqlite_copy
from agents_app.backups.archive import (
    DATABASES,
    KEYS,
    STATE,
    BackupManifest,
    extract_archive,
    sync_directory,
)
from agents_app.backups.create import KEY_FILES
from agents_app.backups.failures import refuse_failures
from agents_app.backups.sealing import unseal
from agents_app.backups.state import unpack_state
from agents_app.conf import Conf, command_line, database_settings
from agents_app.database import ENGINE, migrations_of_code
from agents_app.errors import Refused
from agents_app.installation import (
    create_data_directory,
    database_files,
    hold_lock,
    write_private,
)

# An installation that has none of these rows has nothing to lose.
_FILLED = ("drover_agent", "drover_work_item", "drover_schedule", "drover_credential", "auth_user")


@dataclass(frozen=True, slots=True)
class RestoreResult:
    manifest: BackupManifest
    # The directory with the files that were replaced; empty if there were none.
    replaced: str
    needs_migrate: bool


@dataclass(frozen=True, slots=True)
class _Extracted:
    manifest: BackupManifest
    database: Path
    state: Path
    keys: dict[str, str]


def restore_backup(
    conf: Conf, source: Path, passphrase: str, now: datetime, *, force: bool
) -> RestoreResult:
    if not source.is_file():
        raise Refused(f"{source} is not a file")
    create_data_directory(conf.data)
    # `up` cannot start meanwhile.
    with hold_lock(conf.data), _staging(conf) as directory:
        with refuse_failures(f"{source} cannot be extracted", "nothing was changed"):
            extracted = _extract(conf, source, passphrase, Path(directory))
        _refuse_live_workers(now)
        if not force and (what := _content_of(conf)):
            raise Refused(
                f"the installation is not empty: {what}. Use --force to replace it; files are "
                "kept in a directory beside, a PostgreSQL database is not: back it up first"
            )
        replaced = _put_in_place(conf, extracted, now)
    needs_migrate = set(migrations_of_code()) != set(extracted.manifest.schema)
    return RestoreResult(extracted.manifest, str(replaced or ""), needs_migrate)


def _staging(conf: Conf) -> "tempfile.TemporaryDirectory[str]":
    """In the data directory, so that files are put in place by renaming."""
    return tempfile.TemporaryDirectory(prefix=".restore-", dir=conf.data)


# --- checks ---------------------------------------------------------------------------------


def _extract(conf: Conf, source: Path, passphrase: str, staging: Path) -> _Extracted:
    """Extract and check everything; nothing outside `staging` is changed."""
    manifest = extract_archive(source, staging)
    if manifest.engine != ENGINE.name:
        raise Refused(
            f"{source} is a backup of {manifest.engine}, and DATABASE_URL names {ENGINE.name}: "
            "restore it with a DATABASE_URL of the same engine; from SQLite to PostgreSQL continue "
            f"with {command_line('move_to_postgres')} URL"
        )
    if unknown := [name for name in manifest.schema if name not in migrations_of_code()]:
        raise Refused(
            f"{source} has the schema {unknown[-1]} of Drover {manifest.drover_version}, which is "
            "newer than this version: install that version or a newer one"
        )
    opened = unseal((staging / KEYS).read_bytes(), passphrase)
    if any(manifest.members[name] != digest for name, digest in opened["digests"].items()):
        raise Refused(f"{source} was altered: its members are not those that were sealed")
    database = _prepare_database(conf, staging, manifest)
    try:
        unpack_state(staging / STATE, staging / "state")
    except (OSError, ValueError) as error:
        raise Refused(f"the state directories cannot be extracted: {error}") from None
    keys = {name: opened["files"][name] for name in KEY_FILES if name in opened["files"]}
    return _Extracted(manifest, database, staging / "state", keys)


def _prepare_database(conf: Conf, staging: Path, manifest: BackupManifest) -> Path:
    database = staging / DATABASES[manifest.engine]
    if database_files(conf):
        sqlite_copy.check_copy(database, manifest.counts)
        sqlite_copy.forget_processes(database)
        database.chmod(0o600)
        return database
    script = staging / "database.sql"
    postgres_dump.write_script(database, script, database_settings(conf.database_url))
    return script


def _refuse_live_workers(now: datetime) -> None:
    """Processes that were started one by one, or on another host, hold no lock."""
    if "drover_worker" not in connection.introspection.table_names():
        return
    workers: Any = apps.get_model("agents_app", "Worker")._default_manager
    live = workers.filter(ended_at__isnull=True, lease_until__gt=now)
    if name := live.values_list("name", flat=True).first():
        raise Refused(f"worker {name} uses this database: stop Drover first; nothing was changed")


def _content_of(conf: Conf) -> str:
    """What would be replaced; empty if there is nothing of value."""
    existing = connection.introspection.table_names()
    with connection.cursor() as cursor:
        for table in _FILLED:
            if table in existing:
                cursor.execute(f"SELECT count(*) FROM {table}")  # noqa: S608
                if count := cursor.fetchone()[0]:
                    return f"{table} has {count} rows"
    state = conf.data / "state"
    return f"{state} has files" if state.is_dir() and any(state.iterdir()) else ""


# --- changes --------------------------------------------------------------------------------


def _put_in_place(conf: Conf, extracted: _Extracted, now: datetime) -> Path | None:
    """The database of PostgreSQL first: it is the only step that may fail for outside reasons."""
    connection.close()
    files = database_files(conf)
    if not files:
        settings = database_settings(conf.database_url)
        known = set(connection.introspection.django_table_names(include_views=False))
        counts = extracted.manifest.counts
        with refuse_failures("the database cannot be replaced", "nothing was changed"):
            postgres_dump.replace_database(settings, extracted.database, counts, known)
    old = [path for path in (*files, conf.data / "state") if path.exists()]
    old += [conf.data / name for name in extracted.keys if (conf.data / name).exists()]
    replaced = _move_aside(conf, old, now)
    if files:
        _move(extracted.database, files[0])
    extracted.state.replace(conf.data / "state")
    for name, text in extracted.keys.items():
        write_private(conf.data / name, text)
    sync_directory(conf.data)
    return replaced


def _move_aside(conf: Conf, paths: list[Path], now: datetime) -> Path | None:
    """Keep the files that are replaced: nothing is deleted."""
    if not paths:
        return None
    stamp = now.strftime("%Y%m%dT%H%M%S")
    directory = Path(tempfile.mkdtemp(prefix=f"replaced-{stamp}-", dir=conf.data))
    for path in paths:
        _move(path, directory / path.name)
    return directory


def _move(source: Path, target: Path) -> None:
    """Rename; a database file on another disk is copied beside its place first."""
    try:
        source.replace(target)
    except OSError as error:
        if error.errno != errno.EXDEV:
            raise
        draft = target.with_name(f".{target.name}.draft")
        shutil.copy2(source, draft)
        draft.replace(target)
        source.unlink()
