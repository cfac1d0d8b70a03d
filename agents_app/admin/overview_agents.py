"""The agents on the overview: state, triggers, and buttons."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime

from django.db.models import F
from django.http import HttpRequest

from agents_app.admin.agents import PAUSE, RESUME, RUN
from agents_app.admin.base import Verb, act_url
from agents_app.admin.summaries import AgentSummary, with_counts
from agents_app.models import Agent, Schedule, Trigger
from agents_app.reports import read_latest_triggers

MOST_AGENTS = 40
MOST_SCHEDULES = 1000
# In display order.
_KINDS = {
    "cron": ("calendar_clock", "Started by a calendar schedule"),
    "interval": ("avg_pace", "Started by an interval schedule"),
    "once": ("alarm", "Started once by a schedule"),
    "webhook": ("webhook", "Started by webhooks"),
    "call": ("call_split", "Recently called by other agents"),
    "message": ("mail", "Recently started by messages"),
    "rule": ("rule", "Recently started by rules"),
}


@dataclass(frozen=True, slots=True)
class TriggerBadge:
    kind: str
    icon: str
    hint: str


@dataclass(frozen=True, slots=True)
class AgentRow:
    summary: AgentSummary
    triggers: Sequence[TriggerBadge]
    buttons: Sequence[tuple[Verb, str]]


def agent_entries(request: HttpRequest, now: datetime) -> tuple[list[AgentRow], int]:
    """Up to MOST_AGENTS agents and the total; in a large fleet running agents come first."""
    verbs = (RUN, PAUSE, RESUME) if request.user.has_perm("agents_app.change_agent") else ()
    present = Agent.objects.filter(removed_at__isnull=True)
    total = present.count()
    order = ["name", "pk"] if total <= MOST_AGENTS else [F("running").desc(), "name", "pk"]
    agents = list(with_counts(present).order_by(*order)[:MOST_AGENTS])
    kinds = _kinds(agents) if agents else {}
    entries = [
        AgentRow(
            AgentSummary(agent, now),
            trigger_badges(kinds.get(agent.pk, set())),
            [(verb, act_url(agent, verb)) for verb in verbs if verb.fits(agent)],
        )
        for agent in agents
    ]
    return entries, total


def _kinds(agents: Iterable[Agent]) -> dict[int, set[str]]:
    """The trigger kinds of each agent: configured, and recently used."""
    others = {Trigger.CALL, Trigger.MESSAGE, Trigger.RULE, Trigger.WEBHOOK}
    kinds = {
        key: {str(name) for name in seen & others} for key, seen in read_latest_triggers().items()
    }
    for agent in agents:
        if agent.webhooks:
            kinds.setdefault(agent.pk, set()).add("webhook")
    active = Schedule.objects.filter(agent__in=agents, state=Schedule.State.ACTIVE).order_by()
    rows = active.values_list("agent_id", "expression", "one_shot").distinct()
    for agent_id, expression, one_shot in rows[:MOST_SCHEDULES]:
        kinds.setdefault(agent_id, set()).add(kind_of_schedule(expression, one_shot=one_shot))
    return kinds


def kind_of_schedule(expression: str, *, one_shot: bool) -> str:
    """By the form of the expression: `15m`, `every 15 minutes`, or a time of day."""
    if one_shot:
        return "once"
    words = expression.split()
    plain = len(words) == 1 and not expression.startswith("@")
    elapsed = words[:1] == ["every"] and "at" not in words
    return "interval" if plain or elapsed else "cron"


def trigger_badges(kinds: Iterable[str]) -> list[TriggerBadge]:
    known = set(kinds)
    return [TriggerBadge(kind, *_KINDS[kind]) for kind in _KINDS if kind in known]


def names_of(agent_ids: Iterable[int]) -> dict[int, str]:
    return dict(Agent.objects.filter(pk__in=list(agent_ids)).values_list("pk", "name"))
