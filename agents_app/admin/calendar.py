"""The calendar: the fires of the next five weeks, of all agents, of one tenant or of one agent."""

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, cast
from zoneinfo import ZoneInfo

from django.db.models import QuerySet
from django.http import HttpRequest
from django.utils.timezone import get_current_timezone_name

from agents_app.admin.filters import number_in, tenant_choices
from agents_app.admin.formatting import page_of
from agents_app.admin.summaries import DEFAULT_SCHEDULE
from agents_app.models import Agent, Schedule
from agents_app.runs import find_blocks
from agents_app.triggers import (
    Gap,
    IntervalTrigger,
    OverlapHour,
    next_clock_change,
    parse_trigger,
    zone,
)
from agents_app.triggers.preview import (
    ClockRule,
    DayPeriod,
    FiresOfDay,
    clock,
    days_from,
    fires_by_day,
)

DAYS = 7
WEEKS = 5
MOST_SCHEDULES = 100
MOST_AGENTS = 200
MOST_A_DAY = 30
DAY_SECONDS = 86_400


@dataclass(frozen=True, slots=True)
class CalendarLine:
    """One fire, or a band of many fires that `starts` at a percentage of the day."""

    at: datetime
    time: str
    schedule: Schedule
    band: bool = False
    starts: float = 0
    width: float = 0

    @property
    def url(self) -> str:
        return page_of(self.schedule)

    @property
    def name(self) -> str:
        return "" if self.schedule.name == DEFAULT_SCHEDULE else self.schedule.name

    @property
    def text(self) -> str:
        return self.schedule.text or self.schedule.expression

    @property
    def obstacle(self) -> str:
        """Why the fire would currently be skipped."""
        agent = self.schedule.agent
        found = find_blocks(agent, agent.tenant)
        return next((block.text for block in found if not block.ends_at_known_time), "")

    @property
    def hint(self) -> str:
        there = clock(self.at, self.schedule.timezone)
        parts = (self.text, there, "estimated" if self.estimated else "", self.obstacle)
        return ", ".join(filter(None, parts))

    @property
    def estimated(self) -> bool:
        """An interval counts from the end of each run, which is not known in advance."""
        return self.schedule.interval_seconds is not None


@dataclass(frozen=True, slots=True)
class CalendarDay:
    day: DayPeriod
    today: bool
    change: str
    lines: tuple[CalendarLine, ...]
    left_out: int


def calendar_of(request: HttpRequest, now: datetime) -> dict[str, Any]:
    """The context of the page; four queries, independent of the number of schedules."""
    place = zone(get_current_timezone_name())
    week = number_in(request, "week", WEEKS - 1)
    chosen = {name: number_in(request, name) for name in ("tenant", "agent")}
    today = now.astimezone(place).date()
    days = days_from(today + timedelta(days=DAYS * week), DAYS, place)
    wanted = Schedule.objects.filter(**{name: key for name, key in chosen.items() if key})
    schedules = list(_armed(wanted, days[-1].end)[: MOST_SCHEDULES + 1])
    columns = _columns(schedules[:MOST_SCHEDULES], days, place)
    return {
        "columns": [
            CalendarDay(d, d.date == today, _change(d, place), *lines) for d, lines in columns
        ],
        "last": days[-1],
        "zone": place.key,
        "week": week,
        "earlier": week - 1 if week else None,
        "later": week + 1 if week < WEEKS - 1 else None,
        "agent_id": chosen["agent"],
        "agents": _agents(chosen["tenant"]),
        "tenant_id": chosen["tenant"],
        "tenants": tenant_choices(),
        "no_fires": not any(lines for _, (lines, _) in columns),
        "too_many": MOST_SCHEDULES if len(schedules) > MOST_SCHEDULES else 0,
        "paused": wanted.filter(state=Schedule.State.PAUSED).count(),
    }


def _armed(schedules: QuerySet[Schedule], until: datetime) -> QuerySet[Schedule]:
    armed = schedules.filter(state=Schedule.State.ACTIVE, next_fire_at__lt=until)
    return armed.select_related("agent__tenant").defer("prompt").order_by("next_fire_at", "pk")


def _agents(tenant_id: int) -> list[Agent]:
    """The agents with active or paused schedules, for the selection; 0: of all tenants."""
    own = Schedule.objects.filter(state__in=("active", "paused"))
    if tenant_id:
        own = own.filter(tenant=tenant_id)
    found = Agent.objects.filter(pk__in=own.values("agent")).only("pk", "name").order_by("name")
    return list(found[:MOST_AGENTS])


# --- days -----------------------------------------------------------------------------------


def _columns(
    schedules: Iterable[Schedule], days: tuple[DayPeriod, ...], place: ZoneInfo
) -> list[tuple[DayPeriod, tuple[tuple[CalendarLine, ...], int]]]:
    lines: dict[DayPeriod, list[CalendarLine]] = {day: [] for day in days}
    for schedule in schedules:
        assert schedule.next_fire_at is not None
        found = fires_by_day(_rule(schedule), schedule.next_fire_at, days)
        for day, fired in zip(days, found, strict=True):
            lines[day] += _lines(schedule, day, fired, place) if fired else []
    return [(day, _bounded(found)) for day, found in lines.items()]


def _bounded(lines: list[CalendarLine]) -> tuple[tuple[CalendarLine, ...], int]:
    """Bands first, then fires by time; at most MOST_A_DAY."""
    ordered = sorted(lines, key=lambda line: (not line.band, line.at, line.schedule.pk))
    return tuple(ordered[:MOST_A_DAY]), max(0, len(ordered) - MOST_A_DAY)


def _lines(
    schedule: Schedule, day: DayPeriod, fired: FiresOfDay, place: ZoneInfo
) -> list[CalendarLine]:
    if fired.band is None:
        return [CalendarLine(at, _time(at, place), schedule) for at in fired.fires]
    first, last = fired.band
    starts, ends = (100 * _part(day, at) for at in fired.band)
    times = f"{_time(first, place)} to {_time(last, place)}"
    return [
        CalendarLine(
            first, times, schedule, True, round(starts, 1), round(max(1, ends - starts), 1)
        )
    ]


def _part(day: DayPeriod, at: datetime) -> float:
    return (at - day.start) / (day.end - day.start)


def _time(at: datetime, place: ZoneInfo) -> str:
    return f"{at.astimezone(place):%H:%M}"


def _rule(schedule: Schedule) -> ClockRule:
    trigger = parse_trigger(schedule.expression)
    if isinstance(trigger, IntervalTrigger):
        return ClockRule(trigger, zone("UTC"))
    policies = cast("Gap", schedule.gap), cast("OverlapHour", schedule.overlap_hour)
    return ClockRule(trigger, zone(schedule.timezone), *policies)


def _change(day: DayPeriod, place: ZoneInfo) -> str:
    """The change of the clocks in the reader's time zone on this day."""
    change = next_clock_change(place, day.start)
    if change is None or change.at >= day.end.timestamp():
        return ""
    way = "forward" if change.after > change.before else "back"
    return f"Clocks go {way}"
