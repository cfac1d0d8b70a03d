"""Synchronizes the projects of tenants with the database, at start and after every change.

Belongs here: synchronizing specs with rows, and watching the directory.
Does not belong here: parsing files (skills).
"""

from agents_app.project.sync import sync_discovery, sync_project, sync_tenant
from agents_app.project.watch_all import ProjectWatcher
from agents_app.project.webhook_sources import find_missing_sources, missing_source

__all__ = [
    "ProjectWatcher",
    "find_missing_sources",
    "missing_source",
    "sync_discovery",
    "sync_project",
    "sync_tenant",
]
