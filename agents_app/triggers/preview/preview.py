"""When a schedule will fire, as people read it before they save it; pure, no rows."""

from dataclasses import dataclass
from datetime import UTC, datetime
from typing import cast

from agents_app.errors import DroverError, TriggerParseError
from agents_app.triggers import (
    CronTrigger,
    Gap,
    IntervalTrigger,
    OnceTrigger,
    OverlapHour,
    Trigger,
    next_fire,
    parse_when,
    spoken_cron,
    spoken_interval,
    suggest,
    upcoming,
    zone,
)
from agents_app.triggers.preview.clock_change import ClockChange, ClockRule, fires_around_change
from agents_app.triggers.preview.wall_clock import Fire, as_fire

SHOWN = 5
ONCE = "Fires once."
FROM_THE_END = "Counted from the end of each run."
FROM_THE_START = "Counted as elapsed time, whatever the clocks on the wall do."


@dataclass(frozen=True, slots=True)
class Preview:
    """The next fires, or what is wrong with the text; `note` says how to read them."""

    fires: tuple[Fire, ...] = ()
    # What the text was understood as, in words.
    said: str = ""
    note: str = ""
    error: str = ""
    # The text before, at and after the word that makes no sense.
    marked: tuple[str, str, str] | None = None
    # Another text that can be read, and may be what was meant.
    suggestion: str = ""
    # One form a line, for whoever wrote something else.
    accepted: str = ""
    expression: str = ""
    # The text may end in a zone of its own.
    timezone: str = ""
    # What the next clock change of that zone does to the fires.
    change: ClockChange | None = None

    @property
    def forms(self) -> tuple[tuple[str, ...], ...]:
        """What is accepted, one kind after the other."""
        return tuple(tuple(line.split(" | ")) for line in self.accepted.splitlines())


def preview_fires(
    text: str,
    timezone: str,
    now: datetime,
    *,
    gap: str = "shift",
    overlap_hour: str = "first",
    anchor: str = "",
    armed: datetime | None = None,
    count: int = SHOWN,
) -> Preview:
    """`armed` is the next fire of a saved schedule; without it the schedule would be new."""
    policies = cast("Gap", gap), cast("OverlapHour", overlap_hour)
    saved = armed is not None
    try:
        local = zone(timezone.strip())
        when = parse_when(text, now, local, *policies, allow_past=saved)
        rule = ClockRule(when.trigger, when.zone, *policies)
        first = armed.astimezone(UTC) if armed else _first(rule, anchor, now)
    except DroverError as error:
        return _wrong(text, error)
    moments = [] if first is None else [first, *_following(rule, first, count - 1)]
    change = None
    if first is not None and _has_times(rule.trigger, anchor):
        change = fires_around_change(rule, first, now)
    return Preview(
        fires=tuple(as_fire(at, rule.zone) for at in moments),
        said=_said(rule, anchor, first),
        note=_note(rule.trigger, anchor),
        expression=rule.trigger.expression,
        timezone=rule.zone.key,
        change=change,
    )


def _wrong(text: str, error: DroverError) -> Preview:
    accepted = error.accepted if isinstance(error, TriggerParseError) else ""
    if text.strip():
        # A zone that is wrong has a box of its own, and is no fault of the text.
        better = suggest(text) if accepted else ""
        marked = _marked(text, error) if accepted else None
        return Preview(error=str(error), marked=marked, suggestion=better, accepted=accepted)
    # Somebody who has not begun to write has done nothing wrong.
    return Preview(note=str(error), accepted=accepted)


def _marked(text: str, error: DroverError) -> tuple[str, str, str] | None:
    position = getattr(error, "position", None)
    if position is None or not text[position:].strip():
        return None
    word = text[position:].split(maxsplit=1)[0]
    start = text.index(word, position)
    return text[:start], word, text[start + len(word) :]


def _said(rule: ClockRule, anchor: str, first: datetime | None) -> str:
    if isinstance(rule.trigger, CronTrigger):
        return f"{spoken_cron(rule.trigger)}, in {rule.zone.key}"
    if isinstance(rule.trigger, IntervalTrigger):
        of_a_run = _counts_from_the_end(rule.trigger, anchor)
        since = "the end of each run" if of_a_run else "its creation, by elapsed time"
        return f"{spoken_interval(rule.trigger)}, counted from {since}"
    return f"once, {as_fire(first, rule.zone).local}" if first else "once"


def _first(rule: ClockRule, anchor: str, now: datetime) -> datetime | None:
    """An interval that counts from the end of a run has none to wait for at first."""
    if _counts_from_the_end(rule.trigger, anchor):
        return now.astimezone(UTC)
    return next_fire(rule.trigger, now, rule.zone, *rule.policies)


def _following(rule: ClockRule, first: datetime, count: int) -> list[datetime]:
    """For an interval that counts from the end of a run: if runs took no time."""
    if isinstance(rule.trigger, OnceTrigger):
        return []
    return upcoming(rule.trigger, first, rule.zone, count, *rule.policies)


def _counts_from_the_end(trigger: Trigger, anchor: str) -> bool:
    return isinstance(trigger, IntervalTrigger) and (anchor or trigger.anchor) == "completion"


def _has_times(trigger: Trigger, anchor: str) -> bool:
    """Recurring, at times that can be told in advance."""
    return not isinstance(trigger, OnceTrigger) and not _counts_from_the_end(trigger, anchor)


def _note(trigger: Trigger, anchor: str) -> str:
    if isinstance(trigger, OnceTrigger):
        return ONCE
    if isinstance(trigger, IntervalTrigger):
        return FROM_THE_END if _counts_from_the_end(trigger, anchor) else FROM_THE_START
    return ""
