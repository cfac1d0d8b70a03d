"""Beat's own sign of life: how often it looked, how much it fired."""

import time
from datetime import datetime

from django.db.models import F

from agents_app.database import in_transaction
from agents_app.models import Scheduler

WRITE_EVERY_SECONDS = 10.0


class Pulse:
    """Counts in memory and writes now and then: an idle beat must not keep the disk awake."""

    def __init__(self) -> None:
        self.checks = 0
        self.triggers = 0
        self.write_at = 0.0

    def beat(self, now: datetime, claimed: int) -> None:
        self.checks += 1
        self.triggers += claimed
        if time.monotonic() >= self.write_at:
            self._write(now)
            self.write_at = time.monotonic() + WRITE_EVERY_SECONDS

    def _write(self, now: datetime) -> None:
        row = Scheduler.objects.filter(pk=1)
        in_transaction(
            lambda: row.update(
                check_count=F("check_count") + self.checks,
                trigger_count=F("trigger_count") + self.triggers,
                last_check_at=now,
            )
        )
        self.checks = self.triggers = 0
