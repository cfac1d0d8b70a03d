"""What a rule does, by the same verbs as people; commands of a shell are in commands.py."""

from collections.abc import Callable, Sequence
from datetime import datetime

from agents_app.database import in_transaction
from agents_app.errors import DroverError
from agents_app.events import journal
from agents_app.models import Agent, Run, Trigger
from agents_app.rules.engine.decide import RuleAction
from agents_app.rules.engine.outcome import ActionOutcome
from agents_app.rules.engine.summons import lately, same, still_waits, too_soon, waiting
from agents_app.rules.language import BY_RULE, Pause, Release, Resume, Scale, Summon, Tell
from agents_app.runs import Request, control, dispatch
from agents_app.signals import messages

Act = Callable[[Agent], object]


def perform(errand: RuleAction, tenant_id: int) -> ActionOutcome:
    """Whoever is named and cannot be served is a failure; the others are served all the same."""
    by, now = BY_RULE + errand.rule.name, errand.at
    match errand.action:
        case Tell(targets, message):
            tell = _telling(message, by, now)
            return _each(tenant_id, targets, tell, "told")
        case Summon(agent, message):
            return _summon(tenant_id, agent, message or "", errand)
        case Release(targets):
            release: Act = lambda agent: control.stop_agent(agent, by, now)  # noqa: E731
            return _each(tenant_id, targets, release, "released")
        case Pause(targets):
            pause: Act = lambda agent: control.pause_agent(agent, by, now)  # noqa: E731
            return _each(tenant_id, targets, pause, "paused")
        case Resume(targets):
            resume: Act = lambda agent: control.resume_agent(agent, by, now)  # noqa: E731
            return _each(tenant_id, targets, resume, "resumed")
        case Scale(agent, copies):
            scale: Act = lambda one: control.scale_agent(one, copies, by, now)  # noqa: E731
            return _each(tenant_id, (agent,), scale, f"scaled to {copies}")
    raise TypeError(f"{errand.action!r} is done elsewhere")


def _telling(message: str, by: str, now: datetime) -> Act:
    return lambda agent: messages.send(agent, message, by, now)


def _each(tenant_id: int, names: Sequence[str], act: Act, done: str) -> ActionOutcome:
    found = {agent.name: agent for agent in _agents(tenant_id, names)}
    problems = []
    for name in names:
        try:
            if name not in found:
                problems.append(_unknown(name))
            else:
                act(found[name])
        except DroverError as error:
            problems.append(f"{name}: {error}")
    if problems:
        return ActionOutcome(problem="; ".join(problems))
    return ActionOutcome(f"{done}: {', '.join(names)}" if names else "there was nobody to do it to")


def _agents(tenant_id: int, names: Sequence[str]) -> list[Agent]:
    return list(Agent.objects.filter(tenant=tenant_id, name__in=names, removed_at__isnull=True))


def _unknown(name: str) -> str:
    return f"there is no agent {name!r}: add its directory, or correct the rule"


def _summon(tenant_id: int, name: str, prompt: str, errand: RuleAction) -> ActionOutcome:
    agent = next(iter(_agents(tenant_id, [name])), None)
    if agent is None:
        return ActionOutcome(problem=_unknown(name))
    try:
        return in_transaction(lambda: _summon_here(agent, prompt, errand))
    except DroverError as error:
        return ActionOutcome(problem=f"{name}: {error}")


def _summon_here(agent: Agent, prompt: str, errand: RuleAction) -> ActionOutcome:
    """The agent's row decides, whichever rules and beats want it at the same time."""
    by, now = BY_RULE + errand.rule.name, errand.at
    # Asked first: who wants nothing new must not take the minute from a rule that does.
    if waiting().filter(same(prompt, errand.rule_id), agent=agent).exists():
        return ActionOutcome(left=still_waits(agent.name))
    free = Agent.objects.filter(pk=agent.pk).exclude(lately(now))
    if not free.update(summoned_at=now):
        return ActionOutcome(left=too_soon(agent.name))
    request = Request(
        tenant_id=agent.tenant_id,
        agent_id=agent.pk,
        trigger=Trigger.RULE,
        prompt=prompt,
        requested_by=by,
        rule_id=errand.rule_id,
    )
    item = dispatch.enqueue_here(request, now)
    about = f"{by}: work item {item.pk}"
    whose = (agent.tenant_id, agent.pk, None)
    journal.record(journal.JournalEntry("work.requested", now, *whose, about, item.trace_id))
    earlier = Run.objects.filter(agent=agent, work_item__lt=item.pk).select_related("work_item")
    last = earlier.order_by("-id").first()
    summoned_before = last is not None and last.work_item.rule_id == errand.rule_id
    if last is not None and summoned_before and last.state in Run.ENDED_BADLY:
        # It is started all the same, but an agent that falls over again and again less and less.
        return ActionOutcome(
            problem=f"{last}, which this rule had summoned before, ended {last.state}"
        )
    return ActionOutcome(f"summoned: {agent.name}")
