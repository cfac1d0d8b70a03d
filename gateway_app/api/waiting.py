"""Waits within a request until runs have ended."""

import time

from django.db.models import QuerySet

from agents_app.conf import CONF
from agents_app.models import Run

CHECK_EVERY_SECONDS = 0.1
# The grace period of a program that does not stop, and two seconds until its worker has noticed.
LONGEST_SECONDS = CONF.grace_seconds + 2


def wait_until_ended(runs: "QuerySet[Run]") -> None:
    """Returns when none of the runs is left, or after LONGEST_SECONDS: the caller checks again."""
    give_up_at = time.monotonic() + LONGEST_SECONDS
    while runs.exists() and time.monotonic() < give_up_at:
        time.sleep(CHECK_EVERY_SECONDS)
