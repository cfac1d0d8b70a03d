"""Performs the actions of rules on agents; shell commands are in commands.py."""

from collections.abc import Callable, Sequence

from agents_app.database import in_transaction
from agents_app.errors import DroverError
from agents_app.events import journal
from agents_app.models import Agent, Run, Trigger
from agents_app.rules.engine.decide import RuleAction
from agents_app.rules.engine.outcome import ActionOutcome
from agents_app.rules.engine.summons import (
    queued_by_rules,
    recently_summoned,
    same_request,
    still_queued_reason,
    too_soon_reason,
)
from agents_app.rules.language import (
    REQUESTED_BY_PREFIX,
    Pause,
    Release,
    Resume,
    Scale,
    SendMessage,
    Summon,
)
from agents_app.runs import Request, control, dispatch
from agents_app.signals import messages

AgentAction = Callable[[Agent], object]


def perform(rule_action: RuleAction, tenant_id: int) -> ActionOutcome:
    """Perform the action; one agent that fails makes it a failure and does not stop the others."""
    by, now = REQUESTED_BY_PREFIX + rule_action.rule.name, rule_action.at
    match rule_action.action:
        case SendMessage(targets, message):
            send: AgentAction = lambda agent: messages.send(agent, message, by, now)  # noqa: E731
            return _each(tenant_id, targets, send, "message sent")
        case Summon(agent, text):
            return _summon(tenant_id, agent, text or "", rule_action)
        case Release(targets):
            release: AgentAction = lambda agent: control.stop_agent(agent, by, now)  # noqa: E731
            return _each(tenant_id, targets, release, "released")
        case Pause(targets):
            pause: AgentAction = lambda agent: control.pause_agent(agent, by, now)  # noqa: E731
            return _each(tenant_id, targets, pause, "paused")
        case Resume(targets):
            resume: AgentAction = lambda agent: control.resume_agent(agent, by, now)  # noqa: E731
            return _each(tenant_id, targets, resume, "resumed")
        case Scale(agent, copies):
            scale: AgentAction = lambda one: control.scale_agent(one, copies, by, now)  # noqa: E731
            return _each(tenant_id, (agent,), scale, f"scaled to {copies}")
    raise TypeError(f"{rule_action.action!r} is not an action on agents")


def _each(
    tenant_id: int, names: Sequence[str], perform_on: AgentAction, done: str
) -> ActionOutcome:
    found = {agent.name: agent for agent in _agents(tenant_id, names)}
    problems = []
    for name in names:
        try:
            if name not in found:
                problems.append(_unknown(name))
            else:
                perform_on(found[name])
        except DroverError as error:
            problems.append(f"{name}: {error}")
    if problems:
        return ActionOutcome(problem="; ".join(problems))
    return ActionOutcome(f"{done}: {', '.join(names)}" if names else "no agent matched the target")


def _agents(tenant_id: int, names: Sequence[str]) -> list[Agent]:
    return list(Agent.objects.filter(tenant=tenant_id, name__in=names, removed_at__isnull=True))


def _unknown(name: str) -> str:
    return f"there is no agent {name!r}: add its directory, or correct the rule"


def _summon(tenant_id: int, name: str, prompt: str, rule_action: RuleAction) -> ActionOutcome:
    agent = next(iter(_agents(tenant_id, [name])), None)
    if agent is None:
        return ActionOutcome(problem=_unknown(name))
    try:
        return in_transaction(lambda: _enqueue_summon(agent, prompt, rule_action))
    except DroverError as error:
        return ActionOutcome(problem=f"{name}: {error}")


def _enqueue_summon(agent: Agent, prompt: str, rule_action: RuleAction) -> ActionOutcome:
    """Enqueue work for the agent; in a transaction.

    The conditional update of the agent's row decides between rules that summon it concurrently.
    """
    by, rule_id = REQUESTED_BY_PREFIX + rule_action.rule.name, rule_action.rule_id
    now = rule_action.at
    # Checked first: a repeated request must not use up the minute of another rule's request.
    if queued_by_rules().filter(same_request(prompt, rule_id), agent=agent).exists():
        return ActionOutcome(skipped=still_queued_reason(agent.name))
    free = Agent.objects.filter(pk=agent.pk).exclude(recently_summoned(now))
    if not free.update(summoned_at=now):
        return ActionOutcome(skipped=too_soon_reason(agent.name))
    request = Request(
        tenant_id=agent.tenant_id,
        agent_id=agent.pk,
        trigger=Trigger.RULE,
        prompt=prompt,
        requested_by=by,
        rule_id=rule_id,
    )
    item = dispatch.enqueue_in_transaction(request, now)
    detail = f"{by}: work item {item.pk}"
    owner = (agent.tenant_id, agent.pk, None)
    journal.record(
        journal.JournalEntry("work.requested", now, *owner, detail, item.trace_id, actor=by)
    )
    earlier = Run.objects.filter(agent=agent, work_item__lt=item.pk).select_related("work_item")
    last = earlier.order_by("-id").first()
    if last and last.work_item.rule_id == rule_id and last.state in Run.ENDED_BADLY:
        # The agent is started nevertheless, but less and less often while its runs fail.
        return ActionOutcome(problem=f"{last}, which this rule summoned before, ended {last.state}")
    return ActionOutcome(f"summoned: {agent.name}")
