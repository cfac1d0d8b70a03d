"""When a summon is skipped; the same checks serve the action and the dry run."""

from collections.abc import Collection
from dataclasses import dataclass
from datetime import datetime, timedelta

from django.db.models import Q, QuerySet

from agents_app.models import Agent, Tenant, Trigger, WorkItem

# Two rules that summon the same agent within this time start it once.
SUMMON_INTERVAL = timedelta(seconds=60)


def recently_summoned(now: datetime) -> Q:
    """Bounded on both sides: a clock that was set back must not block summons for long."""
    return Q(summoned_at__gt=now - SUMMON_INTERVAL, summoned_at__lt=now + SUMMON_INTERVAL)


def queued_by_rules() -> QuerySet[WorkItem]:
    return WorkItem.objects.filter(state=WorkItem.State.QUEUED, trigger=Trigger.RULE)


def same_request(prompt: str, rule_id: int) -> Q:
    """By rule or by prompt: the prompt of one rule may contain the time."""
    return Q(rule=rule_id) | Q(prompt=prompt)


def still_queued_reason(name: str) -> str:
    return f"an earlier summon of {name} is still queued"


def too_soon_reason(name: str) -> str:
    return f"{name} was summoned less than {SUMMON_INTERVAL.seconds} seconds ago"


@dataclass(frozen=True, slots=True)
class RecentSummons:
    """The agents that were summoned recently, and the summons that are still queued."""

    agents: frozenset[str]
    rules: frozenset[tuple[str, int]]
    prompts: frozenset[tuple[str, str]]

    def skip_reason(self, name: str, prompt: str, rule_id: int | None) -> str:
        """Why a summon would be skipped, or empty; the same condition as `same_request`."""
        if (name, rule_id) in self.rules or (name, prompt) in self.prompts:
            return still_queued_reason(name)
        return too_soon_reason(name) if name in self.agents else ""


def read_summons(tenant: Tenant, names: Collection[str], now: datetime) -> RecentSummons:
    """Read the summons of these agents in two queries."""
    agents = Agent.objects.filter(tenant=tenant, name__in=names, removed_at__isnull=True)
    found = queued_by_rules().filter(agent__in=agents)
    work = list(found.values_list("agent__name", "rule_id", "prompt"))
    return RecentSummons(
        agents=frozenset(agents.filter(recently_summoned(now)).values_list("name", flat=True)),
        rules=frozenset((name, rule_id) for name, rule_id, _ in work if rule_id is not None),
        prompts=frozenset((name, prompt) for name, _, prompt in work),
    )
