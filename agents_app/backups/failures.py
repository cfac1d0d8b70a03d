"""Errors of databases and disks as one line for users."""

import contextlib
import sqlite3
from collections.abc import Iterator

import psycopg

from agents_app.errors import Refused


@contextlib.contextmanager
def refuse_failures(what: str, consequence: str) -> Iterator[None]:
    """Raise Refused for an error of a database driver or of the disk."""
    try:
        yield
    except (sqlite3.Error, psycopg.Error, OSError) as error:
        reason = " ".join(str(error).split())[:500]
        raise Refused(f"{what}: {reason}; {consequence}") from error
