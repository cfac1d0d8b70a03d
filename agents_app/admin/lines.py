"""One line about an agent or a run, the same wherever it is listed."""

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

from agents_app.admin.show import NOTHING, badge, lasted, link, page_at, page_of, when
from agents_app.models import Agent, Run, Schedule, WorkItem

# The name of an agent's only schedule says nothing.
DEFAULT_SCHEDULE = "default"

# --- agents ---------------------------------------------------------------------------------


def with_figures(agents: QuerySet[Agent]) -> QuerySet[Agent]:
    """Everything a line about an agent needs, in the same query."""
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
    )


def count_by(owner: str, rows: QuerySet[Any]) -> Coalesce:
    """How many of the rows belong to each owner; unlike a join, it never reads the others."""
    own = rows.filter(**{owner: OuterRef("pk")}).order_by().values(owner)
    return Coalesce(Subquery(own.annotate(number=Count("pk")).values("number")), Value(0))


@dataclass(frozen=True, slots=True)
class AgentLine:
    """Of an agent that was read `with_figures`."""

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
        return badge(self.state, self.agent.definition_error or self.agent.pause_note)

    @property
    def slots(self) -> SafeString:
        """A bar of slots in use, and the numbers."""
        running, scale = self.agent.running, self.agent.scale
        used = min(100, round(100 * running / scale)) if scale else 0
        bar = '<span class="dv-slots"><span class="dv-bar"><i style="width:{}%"></i></span>{} / {}'
        return format_html(bar + "</span>", used, running, scale)

    @property
    def queue(self) -> SafeString:
        queued = self.agent.queued
        return link(waiting_url(self.agent), queued) if queued else NOTHING

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


def waiting_url(agent: Agent) -> str:
    query = urlencode({"agent__id__exact": agent.pk, "state__exact": WorkItem.State.QUEUED})
    return f"{reverse('admin:agents_app_workitem_changelist')}?{query}"


def runs_url(agent: Agent) -> str:
    query = urlencode({"agent__id__exact": agent.pk})
    return f"{reverse('admin:agents_app_run_changelist')}?{query}"


# --- runs -----------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class RunLine:
    """Of a run whose agent and schedule were read with it."""

    run: Run
    now: datetime

    @property
    def url(self) -> str:
        return page_of(self.run)

    @property
    def badge(self) -> SafeString:
        return badge(self.run.state, self.run.error)

    @property
    def lasted(self) -> str:
        return lasted(self.run.started_at, self.run.finished_at, self.now)

    @property
    def began(self) -> SafeString:
        return when(self.run.started_at or self.run.created_at, self.now)

    @property
    def trigger(self) -> str:
        """Why it ran: the schedule's name, or who asked."""
        detail = self.run.trigger_detail
        who = self.run.schedule.name if self.run.schedule else self.run.requested_by
        return f"{detail} · {who}" if who not in {"", DEFAULT_SCHEDULE} else detail


def run_outcome(run_id: int, state: str, at: datetime | None, now: datetime) -> SafeString:
    outcome = '<a class="dv-outcome" href="{}">{} {}</a>'
    return format_html(outcome, page_at("run", run_id), badge(state), when(at, now))


def run_lines(runs: Iterable[Run], now: datetime) -> list[RunLine]:
    return [RunLine(run, now) for run in runs]
