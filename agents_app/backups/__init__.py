"""Backups, restores, upgrade checks and the move from SQLite to PostgreSQL.

Belongs here: reading and writing whole databases, key files and state directories.
Does not belong here: decisions about runs and schedules; recovery after a restore is the sweep.
"""

from agents_app.backups.archive import BackupManifest
from agents_app.backups.create import BackupResult, create_backup
from agents_app.backups.move import move_to_postgres
from agents_app.backups.restore import RestoreResult, restore_backup
from agents_app.backups.upgrade import UpgradeReport, check_upgrade, unsafe_operations

__all__ = [
    "BackupManifest",
    "BackupResult",
    "RestoreResult",
    "UpgradeReport",
    "check_upgrade",
    "create_backup",
    "move_to_postgres",
    "restore_backup",
    "unsafe_operations",
]
