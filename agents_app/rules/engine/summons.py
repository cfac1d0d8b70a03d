"""When a summon is left out: the same for what is done and for a dry run."""

from collections.abc import Collection
from dataclasses import dataclass
from datetime import datetime, timedelta

from django.db.models import Q, QuerySet

from agents_app.models import Agent, Tenant, Trigger, WorkItem

# Two rules that want the same agent within this time start it once.
SUMMONED_FOR = timedelta(seconds=60)


def lately(now: datetime) -> Q:
    """By any clock: one that was set back must not keep an agent from being summoned for long."""
    return Q(summoned_at__gt=now - SUMMONED_FOR, summoned_at__lt=now + SUMMONED_FOR)


def waiting() -> QuerySet[WorkItem]:
    return WorkItem.objects.filter(state=WorkItem.State.QUEUED, trigger=Trigger.RULE)


def same(prompt: str, rule_id: int) -> Q:
    """The rule's text may have the time in it."""
    return Q(rule=rule_id) | Q(prompt=prompt)


def still_waits(name: str) -> str:
    return f"{name} was summoned before, and that still waits"


def too_soon(name: str) -> str:
    return f"{name} was summoned less than {SUMMONED_FOR.seconds} seconds ago"


@dataclass(frozen=True, slots=True)
class Summons:
    """Of all agents that rules want: who was summoned lately, and what of it still waits."""

    lately: frozenset[str]
    rules: frozenset[tuple[str, int]]
    prompts: frozenset[tuple[str, str]]

    def left_because(self, name: str, prompt: str, rule_id: int | None) -> str:
        # As `same` says it.
        if (name, rule_id) in self.rules or (name, prompt) in self.prompts:
            return still_waits(name)
        return too_soon(name) if name in self.lately else ""


def look_at_summons(tenant: Tenant, names: Collection[str], now: datetime) -> Summons:
    """Two queries, however many they are."""
    agents = Agent.objects.filter(tenant=tenant, name__in=names, removed_at__isnull=True)
    found = waiting().filter(agent__in=agents)
    work = list(found.values_list("agent__name", "rule_id", "prompt"))
    return Summons(
        lately=frozenset(agents.filter(lately(now)).values_list("name", flat=True)),
        rules=frozenset((name, rule_id) for name, rule_id, _ in work if rule_id is not None),
        prompts=frozenset((name, prompt) for name, _, prompt in work),
    )
