"""From a suite's `input` to what the product says, shaped like `expected`; it decides nothing."""

from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any

from agents_app import triggers
from agents_app.errors import IntervalParseError, TriggerParseError
from agents_app.skills.errors import SkillError
from agents_app.skills.frontmatter import split_frontmatter
from agents_app.skills.names import agent_name_problem

Case = dict[str, Any]


class FirstOf(list[int]):
    """The beginning of an endless list: equal to any part of it that starts at the start.

    A `cron` case lists as many fires as it likes and does not say how many in its input.
    """

    SHOWN = 100

    def __eq__(self, other: object) -> bool:
        return isinstance(other, list) and bool(other) and list(self[: len(other)]) == other

    def __ne__(self, other: object) -> bool:
        return not self == other

    __hash__ = None


def _instant(text: str) -> datetime:
    return datetime.fromisoformat(text).astimezone(UTC)


def _iso(instant: datetime) -> str:
    return instant.isoformat(timespec="milliseconds").replace("+00:00", "Z")


def _milliseconds(duration: timedelta) -> float:
    milliseconds = duration / timedelta(milliseconds=1)
    return int(milliseconds) if milliseconds.is_integer() else milliseconds


def cron(case: Case) -> Case:
    try:
        trigger = triggers.parse_trigger(case["cron"])
        zone = triggers.zone(case["tz"])
    except TriggerParseError:
        return {"ok": False}
    after = datetime.fromtimestamp(case["after"], UTC)
    fires = triggers.upcoming(trigger, after, zone, FirstOf.SHOWN)
    return {"ok": True, "fires": FirstOf(int(fire.timestamp()) for fire in fires)}


def cron_parse(text: str) -> Case:
    try:
        trigger = triggers.parse_cron(text)
    except TriggerParseError as error:
        return {"error": True, "field": error.field}
    return {"expression": trigger.expression, "is_shorthand": trigger.is_shorthand}


def cron_next(count: int) -> Callable[[Case], Any]:
    def adapter(case: Case) -> Any:
        try:
            trigger = triggers.parse_trigger(case["cron"])
            zone = triggers.zone(case["tz"])
        except TriggerParseError:
            return {"error": True}
        fires = triggers.upcoming(trigger, _instant(case["from"]), zone, count)
        return [_iso(fire) for fire in fires]

    return adapter


def interval_parse(text: str) -> Case:
    try:
        return {"ms": triggers.parse_interval(text)}
    except IntervalParseError as error:
        return {"error": error.kind}


def interval_next(case: Case) -> Any:
    try:
        fire = triggers.calculate_next_trigger(
            None if case["last"] is None else _instant(case["last"]),
            case["interval"],
            case["jitter_percent"],
            now=_instant(case["now"]),
            rand=case["rand"],
        )
    except IntervalParseError as error:
        return {"error": error.kind}
    return _iso(fire)


def duration_decimal(text: str) -> Case:
    try:
        return {"ms": _milliseconds(triggers.parse_duration(text))}
    except TriggerParseError:
        return {"error": True}


def duration_interval(text: str) -> Case:
    try:
        return {"ms": triggers.parse_interval(text)}
    except IntervalParseError:
        return {"error": True}


def agent_name(name: str) -> Case:
    return {"valid": agent_name_problem(name) is None}


def skill_frontmatter(text: str) -> Case:
    try:
        data, body = split_frontmatter(text)
    except SkillError:
        return {"error": True}
    return {"data": data, "body": body}


ADAPTERS: dict[str, Callable[[Any], Any]] = {
    "cron": cron,
    "cron.parse": cron_parse,
    "cron.next_a": cron_next(5),
    "cron.next_b": cron_next(3),
    "interval.parse": interval_parse,
    "interval.next": interval_next,
    "duration.decimal": duration_decimal,
    "duration.interval": duration_interval,
    "agent_name": agent_name,
    "skill.frontmatter": skill_frontmatter,
}
