"""What an upgrade would do to the database, and whether old workers survive it."""

import shutil
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from django.db import connection
from django.db.migrations import Migration, operations
from django.db.migrations.executor import MigrationExecutor
from django.db.migrations.operations.base import Operation

from agents_app import __version__
from agents_app.conf import Conf
from agents_app.database import ENGINE, read_schema

# Migrations up to this one were made before old workers had to be considered.
LAST_UNCHECKED = "0027_tenants_project_directory"
# A migration may rewrite a table, and a backup needs as much again.
FREE_FACTOR, LEAST_FREE_BYTES = 2, 100_000_000
_UNSAFE = (
    operations.RemoveField,
    operations.RenameField,
    operations.RenameModel,
    operations.DeleteModel,
    operations.AlterModelTable,
    operations.RunSQL,
)


@dataclass(frozen=True, slots=True)
class UpgradeReport:
    version: str
    engine: str
    schema: str
    schema_of_code: str
    pending: list[str]
    # Operations that an older worker does not survive.
    unsafe: list[str]
    free_bytes: int
    needed_bytes: int
    # Why the upgrade must not begin; empty if it may.
    problems: list[str]


def check_upgrade(conf: Conf) -> UpgradeReport:
    executor = MigrationExecutor(connection)
    plan = [each for each, _ in executor.migration_plan(executor.loader.graph.leaf_nodes())]
    unsafe = [
        f"{each.app_label}.{each.name}: {op}" for each in plan for op in unsafe_operations(each)
    ]
    applied = bool(executor.loader.applied_migrations)
    schema = read_schema() if applied else None
    free, needed = shutil.disk_usage(conf.data).free, _needed_bytes()
    problems = []
    if schema is not None and schema.unknown:
        problems.append(schema.problem)
    if unsafe and applied and _has_live_workers():
        problems.append("stop Drover before the migration: older workers do not survive it")
    if free < needed:
        problems.append(f"{free / 1e9:.1f} GB free, {needed / 1e9:.1f} GB needed: free some space")
    return UpgradeReport(
        version=__version__,
        engine=ENGINE.name,
        schema=schema.version if schema else "",
        schema_of_code=read_schema().of_code[-1] if applied else "",
        pending=[f"{each.app_label}.{each.name}" for each in plan],
        unsafe=unsafe,
        free_bytes=free,
        needed_bytes=needed,
        problems=problems,
    )


def unsafe_operations(migration: Migration) -> Iterator[str]:
    """The operations that break a process of the version before, in words.

    Such a process still reads every column that it knows, and inserts rows without new columns.
    """
    yield from _unsafe(migration.operations)


def _unsafe(each: Sequence[Operation]) -> Iterator[str]:
    for operation in each:
        described = f"{type(operation).__name__} ({operation.describe()})"
        if isinstance(operation, _UNSAFE):
            yield described
        elif isinstance(operation, operations.AddField):
            field = operation.field
            if not (field.null or field.has_db_default() or field.many_to_many):
                yield f"{described}: neither null=True nor db_default"
        elif isinstance(operation, operations.SeparateDatabaseAndState):
            yield from _unsafe(operation.database_operations)


def _has_live_workers() -> bool:
    with connection.cursor() as cursor:
        cursor.execute("SELECT count(*) FROM drover_worker WHERE ended_at IS NULL")
        return bool(cursor.fetchone()[0])


def _needed_bytes() -> int:
    file = ENGINE.file()
    size = file.stat().st_size if file is not None and file.exists() else 0
    return max(LEAST_FREE_BYTES, FREE_FACTOR * size)
