"""One row about an agent, a run or a schedule, the same in every table that lists it."""

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime
from typing import Any
from urllib.parse import urlencode

from django.db.models import Count, OuterRef, Q, QuerySet, Subquery, Value
from django.db.models.functions import Coalesce
from django.urls import reverse
from django.utils.html import format_html
from django.utils.safestring import SafeString

from agents_app.admin.formatting import (
    NOTHING,
    badge,
    link,
    page_at,
    page_of,
    run_duration,
    when,
)
from agents_app.models import Agent, Firing, Run, Schedule, WorkItem
from agents_app.reports import agent_note, oldest_queued_reason

# The name of an unnamed schedule in a SKILL.md; it is not shown.
DEFAULT_SCHEDULE = "default"

# --- agents ---------------------------------------------------------------------------------


def with_counts(agents: QuerySet[Agent]) -> QuerySet[Agent]:
    """Adds what AgentSummary shows to the query."""
    of_agent = Q(agent=OuterRef("pk"))
    ended = Run.objects.filter(of_agent, slot__isnull=True).order_by("-id")
    armed = Schedule.objects.filter(of_agent, state="active", next_fire_at__isnull=False)
    return agents.select_related("tenant").annotate(
        running=count_by("agent", Run.objects.filter(slot__isnull=False)),
        queued=count_by("agent", WorkItem.objects.filter(state=WorkItem.State.QUEUED)),
        last_run_id=Subquery(ended.values("pk")[:1]),
        last_state=Subquery(ended.values("state")[:1]),
        last_finished_at=Subquery(ended.values("finished_at")[:1]),
        next_fire_at=Subquery(armed.order_by("next_fire_at").values("next_fire_at")[:1]),
        queued_reason=oldest_queued_reason(),
    )


def count_by(owner: str, rows: QuerySet[Any]) -> Coalesce:
    """The number of rows of each owner; unlike a join it reads no other rows."""
    own = rows.filter(**{owner: OuterRef("pk")}).order_by().values(owner)
    return Coalesce(Subquery(own.annotate(number=Count("pk")).values("number")), Value(0))


@dataclass(frozen=True, slots=True)
class AgentSummary:
    """Requires an agent that was read `with_counts`."""

    agent: Any
    now: datetime

    @property
    def url(self) -> str:
        return page_of(self.agent)

    @property
    def state(self) -> str:
        agent = self.agent
        if agent.removed_at:
            return "removed"
        if agent.definition_error:
            return "invalid"
        if not agent.enabled:
            return "disabled"
        if agent.paused_at or agent.tenant.paused_at:
            return "paused"
        return "over_budget" if agent.over_budget_until else "enabled"

    @property
    def badge(self) -> SafeString:
        return badge(self.state, self.note)

    @property
    def note(self) -> str:
        return agent_note(self.agent, self.agent.queued_reason)

    @property
    def slots(self) -> SafeString:
        """A bar and the numbers of used and available slots."""
        running, scale = self.agent.running, self.agent.scale
        used = min(100, round(100 * running / scale)) if scale else 0
        bar = '<span class="dv-slots"><span class="dv-bar"><i style="width:{}%"></i></span>{} / {}'
        return format_html(bar + "</span>", used, running, scale)

    @property
    def queue(self) -> SafeString:
        queued = self.agent.queued
        return link(queue_url(self.agent), queued) if queued else NOTHING

    @property
    def outcome(self) -> SafeString:
        if self.agent.last_run_id is None:
            return NOTHING
        agent = self.agent
        return run_outcome(agent.last_run_id, agent.last_state, agent.last_finished_at, self.now)

    @property
    def next_fire(self) -> SafeString:
        fires = self.state in {"enabled", "invalid"}
        return when(self.agent.next_fire_at, self.now) if fires else NOTHING


def queue_url(agent: Agent) -> str:
    query = urlencode({"agent__id__exact": agent.pk, "state__exact": WorkItem.State.QUEUED})
    return f"{reverse('admin:agents_app_workitem_changelist')}?{query}"


def runs_url(agent: Agent) -> str:
    query = urlencode({"agent__id__exact": agent.pk})
    return f"{reverse('admin:agents_app_run_changelist')}?{query}"


# --- runs -----------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class RunSummary:
    """Requires a run that was read with its agent and schedule."""

    run: Run
    now: datetime

    @property
    def url(self) -> str:
        return page_of(self.run)

    @property
    def badge(self) -> SafeString:
        return badge(self.run.state, self.run.error)

    @property
    def duration(self) -> str:
        return run_duration(self.run.started_at, self.run.finished_at, self.now)

    @property
    def started(self) -> SafeString:
        return when(self.run.started_at or self.run.created_at, self.now)

    @property
    def trigger(self) -> str:
        """The trigger with the schedule's name or the requester."""
        detail = self.run.trigger_detail
        origin = self.run.schedule.name if self.run.schedule else self.run.requested_by
        # Rules and deliveries are requesters with a kind before their name: `rule disk`.
        origin = origin.removeprefix(f"{detail} ")
        return f"{detail} · {origin}" if origin not in {"", DEFAULT_SCHEDULE} else detail


def run_outcome(run_id: int, state: str, at: datetime | None, now: datetime) -> SafeString:
    outcome = '<a class="dv-outcome" href="{}">{} {}</a>'
    return format_html(outcome, page_at("run", run_id), badge(state), when(at, now))


def run_summaries(runs: Iterable[Run], now: datetime) -> list[RunSummary]:
    return [RunSummary(run, now) for run in runs]


# --- schedules -------------------------------------------------------------------------------


def with_last_outcome(schedules: QuerySet[Schedule]) -> QuerySet[Schedule]:
    """Adds the last firing and the last run of each schedule to the query."""
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
class ScheduleSummary:
    """Requires a schedule that was read with its agent."""

    schedule: Any
    now: datetime

    @property
    def text(self) -> str:
        """The trigger as it was entered."""
        return str(self.schedule.text or self.schedule.expression)

    @property
    def url(self) -> str:
        return page_of(self.schedule)

    @property
    def badge(self) -> SafeString:
        return badge(self.schedule.shown_state, self.schedule.pause_note)

    @property
    def next_fire(self) -> SafeString:
        active = self.schedule.shown_state == Schedule.State.ACTIVE
        return when(self.schedule.next_fire_at, self.now) if active else NOTHING

    @property
    def outcome(self) -> SafeString:
        """The last run, or the last firing that led to none; requires `with_last_outcome`."""
        schedule = self.schedule
        if schedule.ran_id and (schedule.fired_at is None or schedule.ran_at >= schedule.fired_at):
            return run_outcome(schedule.ran_id, schedule.ran_state, schedule.ran_at, self.now)
        if schedule.fired_at is None:
            return NOTHING
        state = badge(schedule.fired_outcome or "undecided")
        reason = schedule.fired_reason.replace("_", " ")
        fired = when(schedule.fired_at, self.now)
        return format_html('<span class="dv-outcome">{} {} {}</span>', state, reason, fired)


def schedule_summaries(schedules: Iterable[Schedule], now: datetime) -> list[ScheduleSummary]:
    return [ScheduleSummary(schedule, now) for schedule in schedules]
