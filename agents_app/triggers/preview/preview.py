"""The preview of a schedule: next fires, description, errors and suggestion; pure."""

from dataclasses import dataclass
from datetime import UTC, datetime
from typing import cast

from agents_app.errors import DroverError, TriggerParseError
from agents_app.triggers import (
    BootTrigger,
    CronTrigger,
    Gap,
    IntervalTrigger,
    OnceTrigger,
    OverlapHour,
    Trigger,
    UntimedTrigger,
    describe_cron,
    describe_interval,
    next_fire,
    parse_when,
    suggest,
    upcoming,
    zone,
)
from agents_app.triggers.preview.clock_change import ClockChange, ClockRule, fires_around_change
from agents_app.triggers.preview.wall_clock import Fire, as_fire

SHOWN = 5
ONCE = "Fires once."
AFTER_BOOT = "once after each boot of the host, when Drover starts"
FROM_THE_END = "Counted from the end of each run."
FROM_THE_START = "Counted as elapsed time, independent of clock changes."


@dataclass(frozen=True, slots=True)
class Preview:
    """The next fires, or the error of the text; `note` explains the fires."""

    fires: tuple[Fire, ...] = ()
    # The meaning of the text in words.
    said: str = ""
    note: str = ""
    error: str = ""
    # The text before, at and after the invalid word.
    marked: tuple[str, str, str] | None = None
    # A similar text that is valid.
    suggestion: str = ""
    # The accepted forms, one per line, after an error.
    accepted: str = ""
    expression: str = ""
    # The zone at the end of the text, or the given one.
    timezone: str = ""
    # The effect of the zone's next clock change.
    change: ClockChange | None = None

    @property
    def forms(self) -> tuple[tuple[str, ...], ...]:
        """The accepted forms, grouped by kind."""
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
    """The preview; `armed` is the next fire of a saved schedule, None for a new one."""
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
        # An unknown zone belongs to another field: no suggestion for the text.
        better = suggest(text) if accepted else ""
        marked = _marked(text, error) if accepted else None
        return Preview(error=str(error), marked=marked, suggestion=better, accepted=accepted)
    # An empty text is not shown as an error.
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
        return f"{describe_cron(rule.trigger)}, in {rule.zone.key}"
    if isinstance(rule.trigger, IntervalTrigger):
        of_a_run = _counts_from_the_end(rule.trigger, anchor)
        since = "the end of each run" if of_a_run else "its creation, by elapsed time"
        return f"{describe_interval(rule.trigger)}, counted from {since}"
    if isinstance(rule.trigger, UntimedTrigger):
        return rule.trigger.refusal
    if isinstance(rule.trigger, BootTrigger):
        return AFTER_BOOT
    return f"once, {as_fire(first, rule.zone).local}" if first else "once"


def _first(rule: ClockRule, anchor: str, now: datetime) -> datetime | None:
    """The first fire; an interval that counts from the end of a run fires at once."""
    if _counts_from_the_end(rule.trigger, anchor):
        return now.astimezone(UTC)
    return next_fire(rule.trigger, now, rule.zone, *rule.policies)


def _following(rule: ClockRule, first: datetime, count: int) -> list[datetime]:
    """The fires after the first; for intervals from the end of a run, as if runs took no time."""
    if isinstance(rule.trigger, OnceTrigger):
        return []
    return upcoming(rule.trigger, first, rule.zone, count, *rule.policies)


def _counts_from_the_end(trigger: Trigger, anchor: str) -> bool:
    return isinstance(trigger, IntervalTrigger) and (anchor or trigger.anchor) == "completion"


def _has_times(trigger: Trigger, anchor: str) -> bool:
    """Whether the trigger recurs at times that are known in advance."""
    timed = not isinstance(trigger, OnceTrigger | UntimedTrigger | BootTrigger)
    return timed and not _counts_from_the_end(trigger, anchor)


def _note(trigger: Trigger, anchor: str) -> str:
    if isinstance(trigger, OnceTrigger):
        return ONCE
    if isinstance(trigger, IntervalTrigger):
        return FROM_THE_END if _counts_from_the_end(trigger, anchor) else FROM_THE_START
    return ""
