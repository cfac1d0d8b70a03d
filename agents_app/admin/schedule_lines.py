"""One line about a schedule, the same wherever it is listed."""

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from django.db.models import OuterRef, QuerySet, Subquery
from django.utils.html import format_html
from django.utils.safestring import SafeString

from agents_app.admin.lines import run_outcome
from agents_app.admin.show import NOTHING, badge, page_of, when
from agents_app.models import Firing, Run, Schedule


def with_last_outcome(schedules: QuerySet[Schedule]) -> QuerySet[Schedule]:
    """What became of its last fire, and of its last run, in the same query."""
    fired = Firing.objects.filter(schedule=OuterRef("pk")).order_by("-due_at")
    ran = Run.objects.filter(schedule=OuterRef("pk")).order_by("-id")
    return schedules.annotate(
        fired_outcome=Subquery(fired.values("outcome")[:1]),
        fired_reason=Subquery(fired.values("reason")[:1]),
        fired_at=Subquery(fired.values("recorded_at")[:1]),
        ran_id=Subquery(ran.values("pk")[:1]),
        ran_state=Subquery(ran.values("state")[:1]),
        ran_at=Subquery(ran.values("created_at")[:1]),
    )


@dataclass(frozen=True, slots=True)
class ScheduleRow:
    """Of a schedule whose agent was read with it."""

    schedule: Any
    now: datetime

    @property
    def text(self) -> str:
        """When, as somebody wrote it."""
        return str(self.schedule.text or self.schedule.expression)

    @property
    def url(self) -> str:
        return page_of(self.schedule)

    @property
    def badge(self) -> SafeString:
        return badge(self.schedule.state, self.schedule.pause_note)

    @property
    def next_fire(self) -> SafeString:
        active = self.schedule.state == Schedule.State.ACTIVE
        return when(self.schedule.next_fire_at, self.now) if active else NOTHING

    @property
    def outcome(self) -> SafeString:
        """How its last run went, or why there is none; if it was read `with_last_outcome`."""
        schedule = self.schedule
        if schedule.ran_id and (schedule.fired_at is None or schedule.ran_at >= schedule.fired_at):
            return run_outcome(schedule.ran_id, schedule.ran_state, schedule.ran_at, self.now)
        if schedule.fired_at is None:
            return NOTHING
        state = badge(schedule.fired_outcome or "undecided")
        reason = schedule.fired_reason.replace("_", " ")
        fired = when(schedule.fired_at, self.now)
        return format_html('<span class="dv-outcome">{} {} {}</span>', state, reason, fired)


def schedule_lines(schedules: Iterable[Schedule], now: datetime) -> list[ScheduleRow]:
    return [ScheduleRow(schedule, now) for schedule in schedules]
