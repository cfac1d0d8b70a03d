"""Reads schedules of Genie: the JSON of its rows, or of `genie schedule list --json`."""

import json
from collections.abc import Mapping
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

from agents_app.errors import TriggerParseError
from agents_app.formats.agent_names import name_of_command, slug
from agents_app.formats.base import text_format
from agents_app.formats.imported import (
    ImportContext,
    Imported,
    ImportedAgent,
    ImportedSchedule,
    no_fires,
)
from agents_app.formats.json_items import JsonFields, json_objects, looks_like_json
from agents_app.formats.old_cron import (
    OldCronError,
    clock_change_settings,
    parse_old_cron,
    rewrite,
)
from agents_app.formats.old_fires import CronFires, IntervalFires, SingleFire
from agents_app.formats.report import ReportLine
from agents_app.triggers import IntervalTrigger, parse_duration, zone

_KNOWN = {
    "id", "name", "cron_expression", "command", "timezone", "status", "run_spec", "metadata",
    "type", "next_due", "due_at", "trigger_status", "created_at", "updated_at",
}  # fmt: skip
_VARIABLES = {
    "GENIE_TRACE_ID": "DROVER_TRACE_ID",
    "GENIE_RUN_ID": "DROVER_RUN_ID",
    "GENIE_SCHEDULE_ID": "DROVER_SCHEDULE_ID",
    "GENIE_TRIGGER_ID": "",
}


def looks_like_genie(text: str) -> bool:
    return looks_like_json(text) and '"cron_expression"' in text


def read_genie(file: str, text: str, context: ImportContext) -> Imported:
    """One agent for each command, with a schedule for each row."""
    reader = _GenieReader(file, context)
    for line, row in json_objects(file, text, reader.errors):
        reader.read_row(line, row)
    return reader.result()


class _GenieReader:
    def __init__(self, file: str, context: ImportContext) -> None:
        self._file, self._context = file, context
        self._agents: dict[str, ImportedAgent] = {}
        self._report: list[ReportLine] = []
        self.errors: list[ReportLine] = []

    def result(self) -> Imported:
        return Imported(tuple(self._agents.values()), tuple(self._report), tuple(self.errors))

    def read_row(self, line: int, row: dict[str, Any]) -> None:
        fields = JsonFields(self._file, line, row, self.errors)
        name, command = fields.text("name"), fields.text("command")
        cron, status = fields.text("cron_expression"), fields.text("status", needed=False)
        if not fields.is_valid:
            return
        if status not in ("", "active", "paused"):
            self._remark(line, "status", f"is {status[:40]!r}; not imported", "nothing")
            return
        schedule = self._schedule(fields, name, cron)
        if schedule is None or not fields.is_valid:
            return
        if status == "paused":
            self._remark(line, "status", "is paused; imported with enabled = false", "enable it")
            settings = {**schedule.settings, "enabled": False}
            schedule = replace(schedule, settings=settings, old_fires=no_fires)
        self._remark_others(line, row, command)
        self._add(line, str(row.get("id") or name), name, command, schedule)

    def _add(
        self, line: int, key: str, name: str, command: str, schedule: ImportedSchedule
    ) -> None:
        agent = self._agents.get(command)
        if agent is None:
            self._agents[command] = ImportedAgent(
                key=key,
                name=slug(name, name_of_command(command)),
                file=self._file,
                line=line,
                description=f"Genie schedule {name}",
                body=command,
                schedules=(schedule,),
            )
            return
        taken = {each.name for each in agent.schedules}
        if schedule.name in taken:
            schedule = replace(schedule, name=f"{schedule.name}-{len(taken) + 1}")
        self._agents[command] = replace(agent, schedules=(*agent.schedules, schedule))

    # --- times ------------------------------------------------------------------------------

    def _schedule(self, fields: JsonFields, name: str, cron: str) -> ImportedSchedule | None:
        name = slug(name, "genie")
        try:
            if cron == "@once":
                return self._once(fields, name)
            if cron.startswith("@every"):
                return self._interval(fields, name, cron)
            return self._cron(fields, name, cron)
        except (TriggerParseError, OldCronError) as error:
            where = getattr(error, "field", None) or "cron_expression"
            fields.refuse(where, f"{cron[:60]!r}: {error}", "correct it in Genie")
        return None

    def _cron(self, fields: JsonFields, name: str, text: str) -> ImportedSchedule:
        if len(text.split()) == 6:
            why = "Genie reads only the first five fields of six"
            self._remark(fields.line, "cron_expression", why, "nothing: the fires are the same")
        area = self._zone(fields)
        five = " ".join(text.split()[:5])
        # Genie goes through the minutes of the real clock.
        cron = parse_old_cron(five, star_prefix_means_both=False)
        cron = replace(cron, leaves_out_skipped=True, fires_twice=True)
        new = rewrite(cron, five)
        return ImportedSchedule(
            name=name,
            old=text,
            expression=new.expression,
            timezone=area,
            settings=clock_change_settings(cron, new.expression),
            old_fires=CronFires(cron, area),
        )

    def _interval(self, fields: JsonFields, name: str, text: str) -> ImportedSchedule:
        every = parse_duration(text.removeprefix("@every"))
        if every % timedelta(seconds=1):
            raise TriggerParseError("give whole seconds", text=text)
        expression = IntervalTrigger(text, every, anchor="start").expression
        first = _instant(fields.data.get("next_due") or fields.data.get("due_at"))
        return ImportedSchedule(
            name=name, old=text, expression=expression, old_fires=IntervalFires(every, first)
        )

    def _once(self, fields: JsonFields, name: str) -> ImportedSchedule | None:
        metadata = fields.data.get("metadata")
        spec = metadata.get("original_spec") if isinstance(metadata, Mapping) else None
        at = _instant(fields.data.get("next_due") or fields.data.get("due_at") or spec)
        if at is None or at <= self._context.now:
            why = "its time is not in the export, or is over; not imported"
            self._remark(fields.line, "cron_expression", f"@once: {why}", "nothing")
            return None
        expression = at.strftime("%Y-%m-%dT%H:%M:%SZ")
        return ImportedSchedule(
            name=name, old="@once", expression=expression, old_fires=SingleFire(at)
        )

    def _zone(self, fields: JsonFields) -> str:
        metadata = fields.data.get("metadata")
        inner = metadata.get("timezone") if isinstance(metadata, Mapping) else None
        name = fields.text("timezone", needed=False) or (inner if isinstance(inner, str) else "")
        return zone(name or "UTC").key

    # --- what has no counterpart ------------------------------------------------------------

    def _remark_others(self, line: int, row: dict[str, Any], command: str) -> None:
        spec = row.get("run_spec")
        try:
            spec = json.loads(spec) if isinstance(spec, str) else spec
        except ValueError:
            spec = None
        for key in spec if isinstance(spec, dict) else ():
            if key == "lease_timeout_ms":
                advice = "nothing: the lease of a worker of Drover is renewed while a run lasts"
            else:
                advice = "set the field of SKILL.md that means the same"
            self._remark(line, f"run_spec.{key}"[:60], "has no counterpart", advice)
        for key in sorted(row.keys() - _KNOWN):
            self._remark(
                line, key[:60], "is not a field that Drover knows", "check whether it is needed"
            )
        for old, new in _VARIABLES.items():
            if old in command:
                advice = f"use {new}" if new else "use DROVER_RUN_ID"
                self._remark(line, old, "is not set in a run of Drover", advice)

    def _remark(self, line: int, name: str, why: str, advice: str) -> None:
        self._report.append(ReportLine(self._file, line, name, why, advice))


def _instant(value: object) -> datetime | None:
    """An ISO time; without an offset it is in UTC."""
    if not isinstance(value, str):
        return None
    try:
        found = datetime.fromisoformat(value)
        return (found if found.tzinfo else found.replace(tzinfo=UTC)).astimezone(UTC)
    except (ValueError, OverflowError):
        return None


GENIE = text_format("schedules of Genie", lambda _name, text: looks_like_genie(text), read_genie)
