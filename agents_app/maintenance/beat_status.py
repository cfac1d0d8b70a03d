"""The status of beat in the database: time of the last check, numbers of checks and claims."""

import time
from datetime import datetime

from django.db.models import F

from agents_app.database import in_transaction
from agents_app.models import Scheduler

WRITE_EVERY_SECONDS = 10.0


class BeatStatus:
    """Counts in memory and writes every 10 s: an idle beat must not write to the disk each time."""

    def __init__(self) -> None:
        self.checks = 0
        self.triggers = 0
        self.write_at = 0.0

    def record_check(self, now: datetime, claimed: int) -> None:
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
