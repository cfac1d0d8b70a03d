"""What one look means for one rule: nothing, another due time, or something to be done."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from functools import cached_property
from hashlib import sha256
from typing import NamedTuple
from zoneinfo import ZoneInfo

from agents_app.models import RuleState
from agents_app.rules.engine.judge import Judgement, fill, judge
from agents_app.rules.engine.snapshot import Fate, FleetView
from agents_app.rules.language import (
    Action,
    Every,
    Pause,
    Release,
    Resume,
    Rule,
    Snapshot,
    Summon,
    Targets,
    Tell,
    Trigger,
    backoff,
    concerned,
    due_after_failure,
    next_due,
    started_by,
)

S = RuleState.Status
COMMAND_SECONDS, COMMAND_GRACE_SECONDS = 300.0, 10.0
# More than anything takes that a rule may do: only a holder on another host is judged by it.
HELD_FOR = timedelta(seconds=2 * (COMMAND_SECONDS + COMMAND_GRACE_SECONDS))


class Standing(NamedTuple):
    """Of a rule's row what a look may change, and which version of it was read.

    A tuple, because a look makes two of them for every rule, and other classes take their time.
    """

    id: int
    revision: int
    next_due_at: datetime
    evaluated_at: datetime | None
    fired_at: datetime | None
    status: str
    reason: str
    failures: int
    backoff_until: datetime | None
    seen: str
    held_by: str
    held_until: datetime | None


@dataclass(frozen=True)
class Evaluation:
    """What is the same for all rules of one tick."""

    now: datetime
    last: datetime
    zone: ZoneInfo
    fleet: FleetView
    holder: str
    # Rules of which whoever did what they say has died.
    abandoned: frozenset[int] = frozenset()
    # Nobody has looked for a while: what was due meanwhile is not made up for.
    resumes: bool = False
    silent: bool = False
    # Why nothing is done at all, if so.
    closed: str = ""

    @cached_property
    def held_until(self) -> datetime:
        return self.now + HELD_FOR


class RuleAction(NamedTuple):
    """Something to be done, by what one look has found: that does not change any more, so whom it
    concerns and what is said is settled by whoever does it, and the look does not wait for it."""

    rule_id: int
    rule: Rule
    judgement: Judgement
    look: Evaluation
    # It was when this began, and is until something comes of it.
    abandoned: bool = False

    @property
    def at(self) -> datetime:
        return self.look.now

    @property
    def action(self) -> Action:
        return settled(self.rule.action, self.look.fleet.snapshot, self.judgement)

    @property
    def seen(self) -> str:
        """How its agents were when it began; asked for only if it fails."""
        return fate_of(self.rule, self.look.fleet.fates)


Decision = tuple[Standing, RuleAction | None]


def decide(rule: Rule, read: Standing, look: Evaluation) -> Decision:
    standing = _released_from_the_dead(read, look)
    if look.resumes:
        return _resumed(rule, standing, look), None
    standing = _given_another_chance(rule, standing, look)
    if standing.next_due_at > look.now:
        return standing, None
    following = _following(rule.trigger, standing, look)
    if standing.held_by:
        reason = "what it began last still goes on"
        return _judged(standing, look, following, standing.status, reason), None
    if look.closed:
        return _skipped(standing, look, following, look.closed), None
    judgement = judge(rule.conditions, look.fleet.snapshot)
    if not judgement.true:
        return _skipped(standing, look, following, judgement.because), None
    if look.silent and isinstance(rule.action, Tell):
        return _skipped(standing, look, following, "messages are silenced"), None
    fired = _judged(standing, look, following, S.RUN, judgement.because, fires=True)
    abandoned = standing.status == S.ABANDONED
    return fired, RuleAction(standing.id, rule, judgement, look, abandoned)


# --- the steps ------------------------------------------------------------------------------


def _released_from_the_dead(standing: Standing, look: Evaluation) -> Standing:
    if standing.id not in look.abandoned:
        return standing
    reason = "beat ended in the middle of it"
    return standing._replace(status=S.ABANDONED, reason=reason, held_by="", held_until=None)


def _resumed(rule: Rule, standing: Standing, look: Evaluation) -> Standing:
    due = next_due(rule.trigger, look.now, look.zone)
    if standing.backoff_until is None:
        return standing._replace(next_due_at=due)
    # A clock that was set back must not make an hour's backoff a day's.
    until = min(standing.backoff_until, look.now + backoff(standing.failures))
    due = due_after_failure(rule.trigger, due, until, look.zone)
    return standing._replace(next_due_at=due, backoff_until=until)


def _given_another_chance(rule: Rule, standing: Standing, look: Evaluation) -> Standing:
    """The agents it names are not what they were when it failed."""
    if not standing.failures or standing.held_by or not standing.seen:
        return standing
    if standing.seen == fate_of(rule, look.fleet.fates):
        return standing
    fired_at = standing.fired_at or look.last
    if isinstance(rule.trigger, Every):
        due = max(fired_at + timedelta(seconds=rule.trigger.seconds), look.now)
    else:
        due = next_due(rule.trigger, max(fired_at, look.last), look.zone)
    return standing._replace(
        next_due_at=due,
        status=S.WAITING,
        reason="its agents have changed since it failed",
        failures=0,
        backoff_until=None,
        seen="",
    )


def _following(trigger: Trigger, standing: Standing, look: Evaluation) -> datetime:
    """Intervals keep their rhythm, however late this look is; none is made up for."""
    if isinstance(trigger, Every):
        rhythm = standing.next_due_at + timedelta(seconds=trigger.seconds)
        return rhythm if rhythm > look.now else next_due(trigger, look.now, look.zone)
    return next_due(trigger, look.now, look.zone)


def _skipped(standing: Standing, look: Evaluation, following: datetime, reason: str) -> Standing:
    """It stays abandoned until something has come of it."""
    status = S.ABANDONED if standing.status == S.ABANDONED else S.SKIP
    return _judged(standing, look, following, status, reason)


def _judged(
    standing: Standing,
    look: Evaluation,
    following: datetime,
    status: str,
    reason: str,
    *,
    fires: bool = False,
) -> Standing:
    """What becomes of every rule that was due; `_replace` would take five times as long."""
    return Standing(
        standing.id,
        standing.revision,
        following,
        look.now,
        look.now if fires else standing.fired_at,
        status,
        reason[:500],
        standing.failures,
        standing.backoff_until,
        standing.seen,
        look.holder if fires else standing.held_by,
        look.held_until if fires else standing.held_until,
    )


# --- what it is about -----------------------------------------------------------------------


def settled(action: Action, snapshot: Snapshot, judgement: Judgement) -> Action:
    """Whom `all` and `{idle}` mean at this moment, and what is said to them.

    A command is left as it is: what agents are called must never become part of a shell's text.
    """
    match action:
        case Tell(targets, message):
            names = _meant(targets, snapshot, judgement)
            return Tell(names, fill(message, snapshot, judgement))
        case Summon(agent, message):
            return Summon(agent, message and fill(message, snapshot, judgement))
        case Release(targets):
            return Release(_meant(targets, snapshot, judgement))
        case Pause("all") | Resume("all"):
            # Also those that have nothing to do at the moment.
            return replace(action, targets=tuple(snapshot.agents))
        case Pause(targets) | Resume(targets):
            return replace(action, targets=_meant(targets, snapshot, judgement))
    return action


def _meant(targets: Targets, snapshot: Snapshot, judgement: Judgement) -> tuple[str, ...]:
    if targets == "all":
        return tuple(snapshot.idle)
    return judgement.idle if targets == "{idle}" else targets


def fate_of(rule: Rule, fates: Mapping[str, Fate]) -> str:
    """That an agent came alive because the rule started it is no news to the rule."""
    names, started = concerned(rule), started_by(rule.action)
    known = {name: fates[name] for name in names if name in fates}
    known.update({name: known[name]._replace(alive=False) for name in started if name in known})
    told = ";".join(f"{name}={known.get(name)}" for name in names)
    return sha256(told.encode()).hexdigest() if names else ""
