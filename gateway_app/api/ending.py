"""Waits, as long as a client may be kept waiting, for runs that were told to end."""

import time

from django.db.models import QuerySet

from agents_app.conf import CONF
from agents_app.models import Run

LOOK_EVERY_SECONDS = 0.1
# As long as a stubborn program is given, and the second in which its worker hears of it.
LONGEST_SECONDS = CONF.grace_seconds + 2


def wait_until_ended(runs: "QuerySet[Run]") -> None:
    """Whoever needs to know whether they have looks again."""
    give_up_at = time.monotonic() + LONGEST_SECONDS
    while runs.exists() and time.monotonic() < give_up_at:
        time.sleep(LOOK_EVERY_SECONDS)
