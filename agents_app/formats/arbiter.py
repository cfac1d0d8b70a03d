"""Reads schedules of Arbiter: the JSON of `GET /v1/schedules`. Its agents must exist already."""

import re
from collections.abc import Iterator
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from typing import Any
from zoneinfo import ZoneInfo

from agents_app.errors import TriggerParseError
from agents_app.formats.base import text_format
from agents_app.formats.imported import (
    ImportContext,
    Imported,
    ImportedAgent,
    ImportedSchedule,
    OldFires,
    no_fires,
)
from agents_app.formats.json_items import JsonFields, json_objects, looks_like_json
from agents_app.formats.old_fires import IntervalFires, SingleFire
from agents_app.formats.report import ReportLine
from agents_app.names import agent_name_problem
from agents_app.triggers import WEEKDAYS, IntervalTrigger, Trigger, parse_when, zone

_ENDED = {"completed", "failed", "canceled", "cancelled"}
_KNOWN = {
    "id", "tenant_id", "agent_id", "agent", "conversation_id", "message", "schedule_phrase",
    "schedule", "schedule_kind", "fire_at", "recur_json", "next_fire_at", "status", "created_at",
    "updated_at", "last_run_at", "last_run_id", "run_count", "normalized",
}  # fmt: skip
_HAS_TIME = re.compile(r"\bat\b", re.IGNORECASE)
_ANY_WEEKDAY = re.compile(r"(?:every\s+week|weekly)(?:\s+at\b.*)?", re.IGNORECASE)
_WEEKLY = re.compile(
    r"every\s+week\b|weekly|every\s+(?:mon|tue|wed|thu|fri|sat|sun)", re.IGNORECASE
)


def looks_like_arbiter(text: str) -> bool:
    names = ('"schedule_phrase"', '"scheduled_task"')
    return looks_like_json(text) and any(name in text for name in names)


def read_arbiter(file: str, text: str, context: ImportContext) -> Imported:
    """The schedules, grouped by agent."""
    reader = _ArbiterReader(file, context)
    for line, row in json_objects(file, text, reader.errors):
        inner = row.get("scheduled_task")
        reader.read_row(line, inner if isinstance(inner, dict) else row)
    return reader.result()


class _ArbiterReader:
    def __init__(self, file: str, context: ImportContext) -> None:
        self._file, self._context = file, context
        self._agents: dict[str, ImportedAgent] = {}
        self._report: list[ReportLine] = []
        self.errors: list[ReportLine] = []

    def result(self) -> Imported:
        return Imported(tuple(self._agents.values()), tuple(self._report), tuple(self.errors))

    def read_row(self, line: int, row: dict[str, Any]) -> None:
        fields = JsonFields(self._file, line, row, self.errors)
        phrase, message = fields.text("schedule_phrase", "schedule"), fields.text("message")
        agent = fields.text("agent_id", "agent", needed=False) or "index"
        status = fields.text("status", needed=False) or "active"
        if not fields.is_valid:
            return
        if agent_name_problem(agent):
            why = f"{agent[:60]!r} is not a valid name of an agent of Drover"
            fields.refuse("agent_id", why, "rename the agent in the export")
            return
        if status in _ENDED:
            self._remark(line, "status", f"is {status}; not imported", "nothing")
            return
        schedule = self._schedule(fields, phrase)
        if schedule is None:
            return
        schedule = replace(schedule, settings={"prompt": message})
        if status == "paused":
            self._remark(line, "status", "is paused; imported with enabled = false", "enable it")
            settings = {"prompt": message, "enabled": False}
            schedule = replace(schedule, settings=settings, old_fires=no_fires)
        self._remark_others(line, row)
        self._add(line, agent, schedule)

    def _add(self, line: int, name: str, schedule: ImportedSchedule) -> None:
        agent = self._agents.get(name) or ImportedAgent(
            key=name, name=name, file=self._file, line=line, description="", is_existing=True
        )
        taken = {each.name for each in agent.schedules}
        if schedule.name in taken:
            schedule = replace(schedule, name=f"{schedule.name}-{len(taken) + 1}")
        self._agents[name] = replace(agent, schedules=(*agent.schedules, schedule))

    def _schedule(self, fields: JsonFields, phrase: str) -> ImportedSchedule | None:
        at = _instant(fields.epoch("next_fire_at", "fire_at"))
        name = f"arbiter-{fields.data.get('id', fields.line)}"[:100]
        area = self._context.host_zone
        if fields.data.get("schedule_kind") in ("once", "one_shot", "oneshot", "one-shot"):
            return self._once(fields, name, phrase, at)
        try:
            when = parse_when(phrase, self._context.now, zone(area), allow_past=True)
        except TriggerParseError as error:
            fields.refuse("schedule_phrase", error.reason, "write it as Drover accepts it")
            return None
        if when.once:
            return self._once(fields, name, phrase, at)
        expression = _with_time_of(phrase, when.trigger, at, area)
        return ImportedSchedule(
            name=name,
            old=phrase,
            expression=expression,
            timezone=area,
            old_fires=_phrase_fires(phrase, when.trigger, at, area),
        )

    def _once(
        self, fields: JsonFields, name: str, phrase: str, at: datetime | None
    ) -> ImportedSchedule | None:
        if at is None or at <= self._context.now:
            why = f"{phrase[:60]!r} is over, or its time is not in the export; not imported"
            self._remark(fields.line, "next_fire_at", why, "nothing")
            return None
        return ImportedSchedule(
            name=name,
            old=phrase,
            expression=at.strftime("%Y-%m-%dT%H:%M:%SZ"),
            old_fires=SingleFire(at),
        )

    def _remark_others(self, line: int, row: dict[str, Any]) -> None:
        if row.get("conversation_id"):
            why = "a run of Drover belongs to no conversation"
            self._remark(
                line, "conversation_id", why, "put what the agent must know into its prompt"
            )
        for key in sorted(row.keys() - _KNOWN):
            self._remark(
                line, key[:60], "is not a field that Drover knows", "check whether it is needed"
            )

    def _remark(self, line: int, name: str, why: str, advice: str) -> None:
        self._report.append(ReportLine(self._file, line, name, why, advice))


def _instant(epoch: float) -> datetime | None:
    try:
        return datetime.fromtimestamp(epoch, UTC) if epoch else None
    except (OverflowError, OSError, ValueError):
        return None


def _with_time_of(phrase: str, trigger: Trigger, at: datetime | None, area: str) -> str:
    """The phrase; with the day and time of the next fire if it has none: Arbiter chose them."""
    words = " ".join(phrase.lower().split())
    if at is None or isinstance(trigger, IntervalTrigger):
        return words
    local = at.astimezone(ZoneInfo(area))
    if _ANY_WEEKDAY.fullmatch(words):
        return f"every {WEEKDAYS[local.isoweekday() % 7]} at {local:%H:%M}"
    return words if _HAS_TIME.search(words) else f"{words} at {local:%H:%M}"


def _phrase_fires(phrase: str, trigger: Trigger, first: datetime | None, area: str) -> OldFires:
    if first is None:
        return no_fires
    if isinstance(trigger, IntervalTrigger):
        return IntervalFires(trigger.every, first)
    return _CalendarFires(7 if _WEEKLY.search(phrase) else 1, first, area)


@dataclass(frozen=True, slots=True)
class _CalendarFires:
    """The fires from the next one in the export, at the same local time every day or week."""

    days: int
    first: datetime
    zone: str

    def __call__(self, after: datetime) -> Iterator[datetime]:
        start = self.first.astimezone(ZoneInfo(self.zone))
        step = timedelta(days=self.days)
        number = max(0, (after - self.first) // step)
        while True:
            fire = (start + number * step).astimezone(UTC)
            if fire > after:
                yield fire
            number += 1


ARBITER = text_format(
    "schedules of Arbiter", lambda _name, text: looks_like_arbiter(text), read_arbiter
)
