"""Reads GitHub Actions workflows with `on.schedule`; their steps remain to be written by hand."""

from collections.abc import Iterable, Iterator, Mapping
from itertools import pairwise
from typing import Any

from agents_app.conf import PROGRAM
from agents_app.errors import TriggerParseError
from agents_app.formats.agent_names import slug
from agents_app.formats.base import Format
from agents_app.formats.imported import ImportContext, Imported, ImportedAgent, ImportedSchedule
from agents_app.formats.old_cron import (
    OldCronError,
    clock_change_settings,
    parse_old_cron,
    rewrite,
)
from agents_app.formats.old_fires import CronFires
from agents_app.formats.report import ReportLine
from agents_app.formats.source_files import Source, SourceFile
from agents_app.skills import SkillError, read_yaml
from agents_app.triggers import zone

_CLAUDE_ACTION = "anthropics/claude-code"
_SHORTEST_MINUTES = 5
_HONOURED = {"name", "on", "jobs", "run-name"}
_NO_COUNTERPART = "has no counterpart in Drover"


def looks_like_workflow(text: str) -> bool:
    keys = {line.partition(":")[0].strip("\"'") for line in text.split("\n") if line[:1].strip()}
    return {"on", "jobs"} <= keys


def read_workflows(files: Iterable[SourceFile], context: ImportContext) -> Imported:
    """One agent for each workflow that has a schedule; the others are left out."""
    found = Imported()
    for file in files:
        found += _WorkflowReader(file, context).read()
    return found


class _WorkflowReader:
    def __init__(self, file: SourceFile, context: ImportContext) -> None:
        self._file, self._context = file, context
        self._report: list[ReportLine] = []
        self._errors: list[ReportLine] = []

    def read(self) -> Imported:
        agents = self._agents()
        return Imported(agents, tuple(self._report), tuple(self._errors))

    def _agents(self) -> tuple[ImportedAgent, ...]:
        try:
            root, self._document = read_yaml(self._file.text, self._file.name, 1)
        except SkillError as error:
            for one in error.each:
                self._errors.append(
                    ReportLine(self._file.name, one.line or 0, "yaml", one.reason, "correct it")
                )
            return ()
        if not isinstance(root, dict):
            self._refuse((), "must be a table with `on` and `jobs`")
            return ()
        schedules = tuple(self._schedules(root))
        if not schedules:
            return ()
        prompts, lines = self._steps(root.get("jobs"))
        self._remark_others(root)
        return (self._agent(root, schedules, prompts, lines),)

    def _agent(
        self,
        root: Mapping[str, Any],
        schedules: tuple[ImportedSchedule, ...],
        prompts: list[str],
        lines: list[str],
    ) -> ImportedAgent:
        # Without directories: files that are written must not depend on where the user is.
        base = self._file.name.rpartition("/")[2]
        stem = base.rpartition(".")[0]
        title = root["name"] if isinstance(root.get("name"), str) else stem
        is_prompt = len(prompts) == 1 and "!`" not in prompts[0]
        return ImportedAgent(
            key=stem,
            name=slug(stem),
            file=self._file.name,
            line=self._document.place(("on", "schedule")).line or 0,
            description=f"Workflow {title}",
            harness="claude-code" if is_prompt else "shell",
            body=prompts[0] if is_prompt else _skeleton(base, lines),
            schedules=schedules,
            needs_work=True,
        )

    # --- on.schedule ------------------------------------------------------------------------

    def _schedules(self, root: Mapping[str, Any]) -> Iterator[ImportedSchedule]:
        triggers = root.get("on")
        entries = triggers.get("schedule") if isinstance(triggers, dict) else None
        if entries is None:
            return
        if not isinstance(entries, list):
            self._refuse(("on", "schedule"), "must be a list of `- cron: ...`")
            return
        for number, entry in enumerate(entries):
            at = ("on", "schedule", number)
            text = entry.get("cron") if isinstance(entry, dict) else None
            if not isinstance(text, str):
                self._refuse(at, "must be a table with the text `cron`")
                continue
            try:
                yield self._schedule(number, text, entry)
            except (OldCronError, TriggerParseError) as error:
                self._refuse((*at, "cron"), f"{text[:60]!r}: {error}")

    def _schedule(self, number: int, text: str, entry: Mapping[str, Any]) -> ImportedSchedule:
        at = ("on", "schedule", number)
        for key in sorted(entry.keys() - {"cron", "timezone"}):
            self._remark((*at, key), "is not a field that Drover knows", "check it")
        given = entry.get("timezone")
        area = zone(given if isinstance(given, str) else "UTC").key
        cron = parse_old_cron(text, star_prefix_means_both=False)
        new = rewrite(cron, text)
        minutes = sorted(cron.minutes)
        gaps = [later - earlier for earlier, later in pairwise(minutes)]
        if gaps and min(gaps) < _SHORTEST_MINUTES:
            why = f"GitHub starts a workflow every {_SHORTEST_MINUTES} minutes at most"
            self._remark((*at, "cron"), why, "choose the times that you want")
        return ImportedSchedule(
            name="github" if number == 0 else f"github-{number + 1}",
            old=text,
            expression=new.expression,
            timezone=area,
            settings=clock_change_settings(cron, new.expression) if area != "UTC" else {},
            old_fires=CronFires(cron, area),
        )

    # --- what the jobs do -------------------------------------------------------------------

    def _steps(self, jobs: Any) -> tuple[list[str], list[str]]:
        """The prompts of Claude Code, and the steps as lines; every step is reported."""
        prompts: list[str] = []
        lines: list[str] = []
        if not isinstance(jobs, dict):
            self._refuse(("jobs",), "must be a table of jobs")
            return prompts, lines
        for name, job in jobs.items():
            if not isinstance(job, dict):
                self._refuse(("jobs", name), "must be a table with `steps`")
                continue
            for key in sorted(job.keys() - {"name", "steps"}):
                advice = "write what is needed in SKILL.md"
                self._remark(("jobs", name, key), _NO_COUNTERPART, advice)
            steps = job.get("steps")
            for number, step in enumerate(steps if isinstance(steps, list) else ()):
                lines += _described(step)
                prompts += self._prompts(("jobs", name, "steps", number), step)
        return prompts, lines

    def _prompts(self, at: tuple[str | int, ...], step: Any) -> list[str]:
        """The prompt of the step, if it starts Claude Code; the step is reported."""
        found = _prompt_of(step)
        if not found:
            self._remark(at, "a step of a workflow is not imported", "write it in SKILL.md")
            return []
        why = "of a step with Claude Code, only the prompt is imported"
        self._remark(at, why, "set `model` and `harness_args` of the agent")
        if "${{" in found[0]:
            why = "expressions of GitHub (${{ ... }}) are not replaced"
            self._remark((*at, "with"), why, "write their values in SKILL.md")
        return found

    def _remark_others(self, root: Mapping[str, Any]) -> None:
        for key in sorted(root.keys() - _HONOURED):
            self._remark((key,), _NO_COUNTERPART, "write what is needed in SKILL.md")
        triggers = root.get("on")
        for key in sorted(triggers.keys() - {"schedule"}) if isinstance(triggers, dict) else ():
            advice = f"use `webhooks` of the agent, or `{PROGRAM} run`"
            self._remark(("on", key), "another trigger than a schedule is not imported", advice)

    def _remark(self, at: tuple[str | int, ...], why: str, advice: str) -> None:
        self._report.append(self._line(at, why, advice))

    def _refuse(self, at: tuple[str | int, ...], why: str) -> None:
        self._errors.append(self._line(at, why, "correct the workflow"))

    def _line(self, at: tuple[str | int, ...], why: str, advice: str) -> ReportLine:
        line = self._document.place(at).line or 0
        name = ".".join(str(part + 1 if isinstance(part, int) else part) for part in at)
        return ReportLine(self._file.name, line, name or "workflow", why, advice)


def _described(step: Any) -> list[str]:
    if not isinstance(step, dict):
        return []
    title = step.get("name") or step.get("uses") or "step"
    run = step.get("run")
    return [*str(title).split("\n"), *(run.split("\n") if isinstance(run, str) else ())]


def _prompt_of(step: Any) -> list[str]:
    """The prompt, if the step starts Claude Code."""
    uses = step.get("uses") if isinstance(step, dict) else None
    inputs = step.get("with") if isinstance(step, dict) else None
    if not isinstance(uses, str) or not uses.startswith(_CLAUDE_ACTION):
        return []
    given = inputs if isinstance(inputs, dict) else {}
    prompt = given.get("prompt") or given.get("direct_prompt")
    return [prompt] if isinstance(prompt, str) and prompt.strip() else []


def _skeleton(file: str, lines: list[str]) -> str:
    """A script that fails until it is written, with the steps as comments."""
    head = [
        f"# Write here what the workflow {file} did, then enable the agent. Its steps:",
        *(f"#   {line}".rstrip() for line in lines),
        f"echo 'The steps of {file.replace(chr(39), '')} are not written yet: see SKILL.md' >&2",
        "exit 13",
    ]
    return "\n".join(head) + "\n"


_WORKFLOWS = (".github/workflows/*.yml", ".github/workflows/*.yaml")


def _patterns(source: Source) -> tuple[str, ...]:
    """In a repository the workflows are below .github; in another directory they are files."""
    is_plain = not source.is_directory or (source.path and source.path.name == "workflows")
    return ("*.yml", "*.yaml") if is_plain else _WORKFLOWS


def _has_workflows(source: Source, _context: ImportContext) -> bool:
    if not source.has(*_patterns(source)):
        return False
    file = source.only
    return source.is_directory or (file is not None and looks_like_workflow(file.text))


def _read_source(source: Source, context: ImportContext) -> Imported:
    return read_workflows(source.files(*_patterns(source)), context)


GITHUB_ACTIONS = Format("GitHub Actions workflows", _has_workflows, _read_source)
