"""The project directory becomes rows, at start and whenever a file changes.

Belongs here: synchronising specs with tables.
Does not belong here: parsing files (skills).
"""

from agents_app.project.sync import sync_project
from agents_app.project.watch import watch_project

__all__ = ["sync_project", "watch_project"]
