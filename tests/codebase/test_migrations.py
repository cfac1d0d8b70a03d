"""New migrations are safe while workers of the version before still run."""

import pytest
from django.db import migrations, models
from django.db.migrations.loader import MigrationLoader
from django.db.migrations.operations.base import Operation

from agents_app.backups import unsafe_operations
from agents_app.backups.upgrade import LAST_UNCHECKED


def test_new_migrations_remove_and_rename_nothing_that_old_workers_use():
    """Add columns with null=True or db_default; remove a column one version after its last use."""
    found = MigrationLoader(None).disk_migrations
    new = [
        each
        for (app, name), each in sorted(found.items())
        if app == "agents_app" and name > LAST_UNCHECKED
    ]
    assert {each.name: list(unsafe_operations(each)) for each in new} == {
        each.name: [] for each in new
    }
    assert ("agents_app", LAST_UNCHECKED) in found


@pytest.mark.parametrize(
    ("operation", "is_safe"),
    [
        (migrations.RemoveField("run", "error"), False),
        (migrations.RenameField("run", "error", "problem"), False),
        (migrations.DeleteModel("Run"), False),
        (migrations.RenameModel("Run", "Execution"), False),
        (migrations.RunSQL("SELECT 1"), False),
        (migrations.AddField("run", "x", models.TextField(default="")), False),
        (migrations.AddField("run", "x", models.TextField(db_default="")), True),
        (migrations.AddField("run", "x", models.TextField(null=True)), True),
        (migrations.CreateModel("Other", [("id", models.BigAutoField(primary_key=True))]), True),
        (
            migrations.SeparateDatabaseAndState(
                database_operations=[migrations.RemoveField("run", "error")]
            ),
            False,
        ),
    ],
)
def test_operations_that_break_old_workers_are_found(operation: Operation, is_safe: bool):
    migration = migrations.Migration("0099_test", "agents_app")
    migration.operations = [operation]  # type: ignore[misc]
    assert (list(unsafe_operations(migration)) == []) is is_safe
