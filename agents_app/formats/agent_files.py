"""The files of an imported agent as text, checked with the parser that reads them later."""

from functools import lru_cache
from pathlib import Path
from typing import Any

from agents_app.formats.imported import ImportedAgent, ImportedSchedule
from agents_app.formats.report import ReportLine
from agents_app.formats.source_files import is_text, printable
from agents_app.formats.toml_text import quoted, toml_table
from agents_app.skills import SkillError, SourceText, parse_skill
from agents_app.triggers import read_untimed

SKILL, CONFIG = "SKILL.md", "config.toml"
_UPDATES = "A later import updates this file as long as it is not edited."
_DISABLED = "Disabled: set scale = 1 to enable the agent, or import again with --enable."
_SKELETON = "Disabled: complete SKILL.md, then set scale = 1 to enable the agent."
_WAS_DISABLED = "Disabled, as in the old system: set scale = 1 to enable the agent."
_OFF = "Schedules with enabled = false do not fire: set it to true, or import with --enable."
MAX_BYTES = 64 * 1024


def agent_files(agent: ImportedAgent, source: str, *, enabled: bool) -> dict[str, str]:
    """The text of each file by its name."""
    config = {CONFIG: _config(agent, source, enabled=enabled)}
    if agent.is_existing:
        return config
    return {SKILL: _skill(agent)} | config


def file_problem(agent: ImportedAgent, files: dict[str, str]) -> ReportLine | None:
    """Why Drover would refuse the files; None if they are valid."""
    if not all(is_text(text) for text in files.values()):
        why, advice = "contains a character that is not text", "save the source as UTF-8"
        return ReportLine(agent.file, agent.line, "agent", why, advice)
    reason = _size_problem(files) or _config_problem(agent.harness, files[CONFIG])
    if reason is None:
        return None
    field, colon, why = reason.partition(": ")
    return ReportLine(
        agent.file,
        agent.line,
        field if colon else "agent",
        f"Drover refuses it: {why or field}",
        "change it in the old system or leave it out, and import again",
    )


def _size_problem(files: dict[str, str]) -> str | None:
    large = [name for name, text in files.items() if len(text.encode()) > MAX_BYTES]
    return f"{large[0]} would have more than {MAX_BYTES} bytes" if large else None


@lru_cache(maxsize=4096)
def _config_problem(harness: str, config: str) -> str | None:
    """Cached: of thousands of agents, many have the same config.toml."""
    # The rest of SKILL.md is a quoted text and a body, which are always valid.
    chosen = f"harness: {harness}\n" if harness else ""
    skill = SourceText(f"---\n{chosen}---\ntrue\n", Path(SKILL))
    try:
        parse_skill(skill, name="imported", config=SourceText(config, Path(CONFIG)))
    except SkillError as error:
        return error.reason
    return None


def _skill(agent: ImportedAgent) -> str:
    front = {"description": agent.description[:1000], "harness": agent.harness}
    lines = [f"{key}: {quoted(value)}" for key, value in front.items() if value]
    return "\n".join(["---", *lines, "---", agent.body.rstrip("\n") + "\n"])


def _config(agent: ImportedAgent, source: str, *, enabled: bool) -> str:
    enabled = enabled and agent.can_be_enabled
    notes = [f"Imported from {printable(source)}. {_UPDATES}"]
    scale: dict[str, Any] = {}
    if agent.is_existing:
        notes += [] if enabled else [_OFF]
    else:
        notes += [] if enabled else [_disabled_note(agent)]
        scale = {"scale": agent.scale if enabled else 0}
    schedules = {
        schedule.name: _schedule(schedule, enabled=enabled or not agent.is_existing)
        for schedule in agent.schedules
        if schedule.expression
    }
    comment = "".join(f"# {note}\n" for note in notes)
    return comment + toml_table({**scale, **agent.fields, "schedules": schedules})


def _disabled_note(agent: ImportedAgent) -> str:
    if agent.needs_work:
        return _SKELETON
    if agent.scale == 0:
        return _WAS_DISABLED
    return _DISABLED.replace("scale = 1", f"scale = {agent.scale}")


def _schedule(schedule: ImportedSchedule, *, enabled: bool) -> dict[str, Any]:
    zone = {"timezone": schedule.timezone} if schedule.timezone else {}
    off = {} if enabled else {"enabled": False}
    untimed = read_untimed(schedule.expression)
    when = {"type": untimed.type} if untimed else {"expression": schedule.expression}
    return {**when, **zone, **schedule.settings, **off}
