"""The acts of concurrent beats, and of users who change schedules at the same time."""

import os
import signal
import time
from datetime import datetime, timedelta
from functools import partial

from django.db import DatabaseError, connection

from agents_app.database.transactions import in_transaction
from agents_app.models import Schedule
from agents_app.runs import schedule_states
from agents_app.schedules import due, firings
from tests.races import removed_guards
from tests.races.checks import EPOCH

PAUSE_SECONDS = 0.005


def wait_until(start_at: float) -> None:
    time.sleep(max(0.0, start_at - time.time()))


class FastClock:
    """The same clock for all racers: `speed` seconds pass in each second."""

    def __init__(self, start_at: float, speed: float) -> None:
        self.start_at, self.speed = start_at, speed

    def now(self) -> datetime:
        return EPOCH + timedelta(seconds=(time.time() - self.start_at) * self.speed)


def beat(start_at: float, seconds: float, speed: float, broken: bool = False) -> list[str]:
    """Tick as beat does, for some seconds; returns the errors."""
    if broken:
        removed_guards.claims_without_guards()
    clock, until, errors = FastClock(start_at, speed), start_at + seconds, []
    wait_until(start_at)
    while time.time() < until:
        try:
            due.claim_due_schedules(clock.now())
            firings.decide_firings(clock.now())
        except DatabaseError as error:
            errors.append(repr(error))
            connection.close()
        time.sleep(PAUSE_SECONDS)
    return errors


def tick(minutes: float, decided_by: float = 0) -> None:
    due.claim_due_schedules(EPOCH + timedelta(minutes=minutes))
    firings.decide_firings(EPOCH + timedelta(minutes=max(minutes, decided_by)))


def tick_and_die(at_sql: str, after: bool) -> None:
    """Send SIGKILL at the first statement that contains `at_sql`, before or after it."""
    removed_guards.die_at(at_sql, after=after)
    tick(0)


def claim_and_die() -> None:
    due.claim_due_schedules(EPOCH)
    os.kill(os.getpid(), signal.SIGKILL)


def pause_schedules(start_at: float) -> None:
    wait_until(start_at)
    for key in Schedule.objects.order_by("pk").values_list("pk", flat=True):
        in_transaction(partial(schedule_states.pause_schedule, key, EPOCH, "meanwhile"))


def cancel_schedules(start_at: float) -> None:
    wait_until(start_at)
    for key in Schedule.objects.order_by("pk").values_list("pk", flat=True):
        in_transaction(partial(schedule_states.cancel_schedule, key, EPOCH, "active"))


def edit_schedules(start_at: float, next_fire_at: str) -> None:
    """The changes of a user in a form: new text, new prompt, new time."""
    wait_until(start_at)
    values = {"expression": "30 * * * *", "prompt": "new", "next_fire_at": next_fire_at}
    for key in Schedule.objects.order_by("pk").values_list("pk", flat=True):
        in_transaction(partial(Schedule.objects.filter(pk=key).update, **values))


def tick_at(start_at: float, minutes: float = 0) -> None:
    wait_until(start_at)
    tick(minutes)
