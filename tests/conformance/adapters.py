"""From a suite's `input` to what the product says, shaped like `expected`; it decides nothing."""

import re
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from agents_app import triggers
from agents_app.errors import IntervalParseError, TriggerParseError
from agents_app.names import agent_name_problem
from agents_app.skills.document import SourceText
from agents_app.skills.errors import SkillError
from agents_app.skills.frontmatter import read_frontmatter
from agents_app.webhooks import providers as webhooks
from tests.conformance import injection_adapter
from tests.conformance.fleet_adapters import FLEET_ADAPTERS
from tests.conformance.herdctl_adapters import HERDCTL_ADAPTERS
from tests.conformance.hooks_adapters import HOOKS_ADAPTERS
from tests.conformance.rules_adapters import RULES_ADAPTERS
from tests.conformance.worksource_adapters import WORKSOURCE_ADAPTERS

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
        document, body = read_frontmatter(SourceText(text, Path("SKILL.md")))
    except SkillError:
        return {"error": True}
    return {"data": document.data, "body": body}


def phrase(case: Case) -> Case:
    now = datetime.fromtimestamp(case["now"], UTC)
    try:
        when = triggers.parse_when(case["phrase"], now, triggers.zone(case["tz"]))
    except TriggerParseError:
        return {"ok": False}
    fires = triggers.upcoming(when.trigger, now, when.zone, 1 if when.once else 3)
    return {
        "ok": True,
        "kind": "once" if when.once else "recurring",
        "fires": [fire.timestamp() for fire in fires],
    }


# The cases do not say which schedules there are: #42 is one, #999999 is none.
LAST_SCHEDULE = 99_999


def writ(case: Case) -> Case:
    found = triggers.parse_schedule_line(
        case["line"], case["caller"], lambda number: number <= LAST_SCHEDULE
    )
    if isinstance(found, triggers.ScheduleLineError):
        return {"ok": False, "error": found.code}
    fields = {"create": ("phrase", "message", "agent"), "list": ()}.get(found.op, ("id",))
    return {"ok": True, "op": found.op} | {name: getattr(found, name) for name in fields}


# What the cases call the schedule among those that are running.
CHECKED = "m"


def schedule_check(case: Case) -> Case:
    schedule, state = case["schedule"], case["state"] or {}
    last = state.get("last_run_at")
    checked = triggers.CheckedSchedule(
        name=CHECKED,
        type=schedule["type"],
        interval=schedule.get("interval"),
        cron=schedule.get("cron") or schedule.get("expression"),
        enabled=schedule.get("enabled", True),
        status=state.get("status", "idle"),
        last_run_at=_instant(last) if last else None,
    )
    result = triggers.check_schedule(
        checked, case["running"], case["max_concurrent"], _instant(case["now"])
    )
    return {"should_trigger": result.should_trigger, "skip_reason": result.skip_reason}


ADAPTERS: dict[str, Callable[[Any], Any]] = {
    "cron": cron,
    "cron.parse": cron_parse,
    "cron.next_a": cron_next(5),
    "cron.next_b": cron_next(3),
    "interval.parse": interval_parse,
    "interval.next": interval_next,
    "duration.decimal": duration_decimal,
    "duration.interval": duration_interval,
    "phrase": phrase,
    "writ": writ,
    "schedule.check": schedule_check,
    "agent_name": agent_name,
    "skill.frontmatter": skill_frontmatter,
    **injection_adapter.ADAPTERS,
}


def _provider(case: Case) -> webhooks.Provider:
    return {**webhooks.PROVIDERS, **webhooks.TRIAL_PROVIDERS}[case["provider"]]


def webhook_signature(case: Case) -> str | None:
    request = webhooks.Signed(case["headers"], case["raw_body"].encode())
    now = datetime.fromtimestamp(case["now_unix"], UTC)
    verdict = webhooks.check_signature(
        _provider(case), request, case["secrets"], now, allow_unsigned=case["allow_unsigned"]
    )
    return verdict.signer


# The cases write a long text as <x*4001>, and the time of receipt as <now>.
RECEIVED_AT = datetime(2026, 1, 1, tzinfo=UTC)
LONG = re.compile(r"<(.)\*(\d+)>")
CUT = re.compile(r"(.)\1{3999}\.\.\.")


def _written_out(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _written_out(one) for key, one in value.items()}
    if isinstance(value, list):
        return [_written_out(one) for one in value]
    long = LONG.fullmatch(value) if isinstance(value, str) else None
    return long[1] * int(long[2]) if long else value


def _abbreviated(value: Any) -> Any:
    if value == _iso(RECEIVED_AT):
        return "<now>"
    cut = CUT.fullmatch(value) if isinstance(value, str) else None
    return f"<{cut[1]}*4000+...>" if cut else value


def webhook_parse(case: Case) -> Case | None:
    body = _written_out(case["body"])
    context = _provider(case).parse(case["headers"], body, RECEIVED_AT)
    if context is None:
        return None
    return {name: _abbreviated(value) for name, value in context.as_dict().items()}


def _filters(case: Case) -> Case:
    return {name: value for name, value in case["trigger"].items() if name != "source"}


def webhook_filter(case: Case) -> bool:
    said: Case = {n: tuple(v) if isinstance(v, list) else v for n, v in case["context"].items()}
    context = webhooks.Context(**said)
    return webhooks.match_filters(_provider(case).filters, _filters(case), context).matched


def webhook_filter_fields(case: Case) -> list[Case]:
    unknown = webhooks.unknown_filters(_provider(case).filters, _filters(case))
    return [{"field": one.field, "suggestion": one.suggestion} for one in unknown]


ADAPTERS |= {
    "webhook.signature": webhook_signature,
    "webhook.parse": webhook_parse,
    "webhook.filter": webhook_filter,
    "webhook.filter_fields": webhook_filter_fields,
}
ADAPTERS |= (
    FLEET_ADAPTERS | HERDCTL_ADAPTERS | HOOKS_ADAPTERS | RULES_ADAPTERS | WORKSOURCE_ADAPTERS
)
