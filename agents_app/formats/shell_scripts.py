"""Finds scheduled calls of Claude Code and Codex in shell scripts.

Recognised are loops with `sleep`, `watch -n`, and lines of a crontab that the script installs.
"""

import re
import shlex
from collections.abc import Iterator
from dataclasses import replace
from datetime import timedelta

from agents_app.conf import PROGRAM
from agents_app.formats.agent_names import KeyCounter, slug
from agents_app.formats.base import text_format
from agents_app.formats.crontab import CrontabReader, model_fields
from agents_app.formats.imported import ImportContext, Imported, ImportedAgent, ImportedSchedule
from agents_app.formats.model_commands import mentions_model, recognise_model_command
from agents_app.formats.old_fires import IntervalFires
from agents_app.formats.report import ReportLine
from agents_app.formats.source_files import MAX_LINE, TOO_LONG
from agents_app.triggers import IntervalTrigger

_LOOP = re.compile(
    r"\s*(?:while\s+(?:true|:|\[\s*1\s*\]|sleep\s+(?P<sleep>\S+))|for\s*\(\(;;\)\))\s*(?:;|$)"
)
_SLEEP = re.compile(r"\s*sleep\s+(?P<span>[0-9.]+[smhd]?)\s*;?\s*")
_WATCH = re.compile(r"\s*watch\s+(?:-n\s*|--interval[= ])(?P<span>[0-9.]+)\s+(?P<command>.+)")
_CRON_LINE = re.compile(
    r"(?P<line>(?:@(?:hourly|daily|midnight|weekly|monthly|yearly|annually|reboot)"
    r"|(?:[0-9*][0-9*/,-]*\s+){4}[0-9A-Za-z*][0-9A-Za-z*/,-]*)\s+\S.*)"
)
_ONE_LINE = re.compile(r"\bdo\b(?P<body>.*)\bdone\b")
_AFTER_DO = re.compile(r"^.*?;\s*do\b")
_LOOP_START = re.compile(r"(?:^|;)\s*(?:while|for|until)\b")
_LOOP_END = re.compile(r"(?:^|;)\s*done\b")
_QUOTED = re.compile(r"\"((?:[^\"\\]|\\.)*)\"|'([^']*)'")
_ESCAPE = re.compile(r"\\([\"\\$`])")
_UNITS = {"s": 1, "m": 60, "h": 3600, "d": 86_400}
_BLOCK_WORDS = {"do", "done", "then", "fi", "else"}


def looks_like_script(name: str, text: str) -> bool:
    first = text.split("\n", 1)[0]
    return name.endswith((".sh", ".bash", ".zsh")) or (first.startswith("#!") and "sh" in first)


def read_script(file: str, text: str, context: ImportContext) -> Imported:
    """An agent for each scheduled call; calls without a schedule are reported."""
    return _ScriptReader(file, text, context).read()


class _ScriptReader:
    def __init__(self, file: str, text: str, context: ImportContext) -> None:
        self._file = file
        self._lines = [line.rstrip("\r") for line in text.split("\n")]
        self._crontab = CrontabReader(file, context, prefix="crontab")
        self._keys = KeyCounter()
        self._agents: list[ImportedAgent] = []
        self._report: list[ReportLine] = []
        self._seen: set[int] = set()

    def read(self) -> Imported:
        for number, line in enumerate(self._lines, 1):
            if number in self._seen or line.strip().startswith("#"):
                continue
            if len(line) > MAX_LINE:
                advice = "import the crontab or timer that starts the script"
                self._report.append(ReportLine(self._file, number, "line", TOO_LONG, advice))
                continue
            if loop := _LOOP.match(line):
                self._read_loop(number, loop["sleep"])
            elif watch := _WATCH.fullmatch(line):
                self._read_watch(number, watch)
            elif mentions_model(line):
                self._read_crontab_line(number, line)
        found = self._crontab.result() + Imported(tuple(self._agents), tuple(self._report))
        if not found.agents and not found.errors:
            why = "no scheduled call of claude or codex was recognised"
            advice = "import the crontab or timer that starts the script"
            return replace(found, errors=(ReportLine(self._file, 0, "script", why, advice),))
        return found

    # --- lines of a crontab -----------------------------------------------------------------

    def _read_crontab_line(self, number: int, line: str) -> None:
        for text in [line, *_quoted(line)]:
            found = _CRON_LINE.fullmatch(text.strip())
            if found and mentions_model(found["line"]):
                self._crontab.read_line(number, found["line"])
                return
        why = "a call of claude or codex outside of a loop or crontab has no schedule"
        advice = "import the crontab or timer that starts the script"
        self._report.append(ReportLine(self._file, number, "command", why, advice))

    # --- loops ------------------------------------------------------------------------------

    def _read_loop(self, number: int, sleep: str | None) -> None:
        body = self._loop_body(number)
        spans = [sleep] if sleep else []
        commands: list[str] = []
        for line in body:
            for part in _parts(line):
                found = _SLEEP.fullmatch(part)
                if found:
                    spans.append(found["span"])
                elif part.strip():
                    commands.append(part.strip())
        if not any(mentions_model(command) for command in commands):
            return
        every = _span(spans[0]) if len(spans) == 1 else None
        if every is None:
            why = "the loop has no single `sleep` with a number, so its interval is unknown"
            self._report.append(ReportLine(self._file, number, "sleep", why, "write the schedule"))
            return
        self._add(number, f"loop with sleep {spans[0]}", commands, every, "completion")

    def _loop_body(self, number: int) -> list[str]:
        """The lines up to the `done` of the loop that starts on this line."""
        first = self._lines[number - 1]
        if one_line := _ONE_LINE.search(first):
            return [one_line["body"]]
        found = [_AFTER_DO.sub("", first)] if _AFTER_DO.search(first) else []
        depth = 1
        for further, line in enumerate(self._lines[number:], number + 1):
            self._seen.add(further)
            depth += len(_LOOP_START.findall(line)) - len(_LOOP_END.findall(line))
            if depth <= 0:
                break
            found.append(line)
        return found

    def _read_watch(self, number: int, watch: re.Match[str]) -> None:
        command = watch["command"].strip()
        unquoted = shlex.split(command) if command[:1] in "'\"" else []
        command = unquoted[0] if len(unquoted) == 1 else command
        every = _span(watch["span"])
        if every is not None and mentions_model(command):
            self._add(number, f"watch -n {watch['span']}", [command], every, "completion")

    def _add(
        self, number: int, old: str, commands: list[str], every: timedelta, anchor: str
    ) -> None:
        model = recognise_model_command(commands[0]) if len(commands) == 1 else None
        if model and model.redirections:
            why = f"{' '.join(model.redirections)}: Drover keeps the output of runs itself"
            advice = f"read it with `{PROGRAM} logs`"
            self._report.append(ReportLine(self._file, number, "redirection", why, advice))
        stem = self._file.rpartition("/")[2].rpartition(".")[0] or self._file
        trigger = IntervalTrigger(old, every, "completion" if anchor == "completion" else "start")
        schedule = ImportedSchedule(
            name="loop", old=old, expression=trigger.expression, old_fires=IntervalFires(every)
        )
        self._agents.append(
            ImportedAgent(
                key=self._keys.key("loop"),
                name=slug(stem),
                file=self._file,
                line=number,
                description=f"Loop of {stem}",
                harness=model.harness if model else "shell",
                body=model.prompt if model else "\n".join(commands) + "\n",
                fields=model_fields(model) if model else {},
                schedules=(schedule,),
            )
        )


def _quoted(line: str) -> Iterator[str]:
    """The texts in quotes, for example after `echo`."""
    for found in _QUOTED.finditer(line):
        yield _ESCAPE.sub(r"\1", found[1]) if found[1] is not None else found[2]


def _parts(line: str) -> list[str]:
    """A line of a loop without its block words, split at `;` outside of quotes."""
    if len(line) > MAX_LINE:
        return [line]
    lexer = shlex.shlex(line, posix=False, punctuation_chars=";")
    lexer.whitespace_split = True
    lexer.commenters = ""
    try:
        words = list(lexer)
    except ValueError:
        return [line]
    parts: list[str] = []
    current: list[str] = []
    for word in words:
        if set(word) == {";"}:
            parts.append(" ".join(current))
            current = []
        elif word not in _BLOCK_WORDS or current:
            current.append(word)
    return [*parts, " ".join(current)]


def _span(text: str) -> timedelta | None:
    number, unit = (text[:-1], text[-1]) if text[-1:] in _UNITS else (text, "s")
    try:
        seconds = float(number) * _UNITS[unit]
    except ValueError:
        return None
    return timedelta(seconds=round(seconds)) if 1 <= seconds <= 366 * 86_400 else None


SHELL_SCRIPT = text_format("shell script", looks_like_script, read_script)
