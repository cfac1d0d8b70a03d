"""Reads systemd timers with the services that they start."""

import re
import shlex
from collections.abc import Callable, Iterable, Iterator
from datetime import timedelta

from agents_app.conf import PROGRAM
from agents_app.formats.agent_names import slug
from agents_app.formats.base import Format
from agents_app.formats.imported import (
    ImportContext,
    Imported,
    ImportedAgent,
    ImportedSchedule,
    looks_secret,
    no_fires,
)
from agents_app.formats.old_cron import clock_change_settings
from agents_app.formats.old_fires import CronFires, IntervalFires
from agents_app.formats.report import ReportLine
from agents_app.formats.source_files import Source, SourceFile
from agents_app.formats.systemd_calendar import (
    CalendarError,
    CalendarEvent,
    parse_calendar,
    parse_span,
)
from agents_app.formats.unit_files import UnitSetting, read_unit
from agents_app.triggers import IntervalTrigger

# The unit of a name, or None.
Services = Callable[[str], SourceFile | None]
_FIRST_FIRES = {"OnActiveSec", "OnBootSec", "OnStartupSec"}
_IGNORED = {"Unit", "Description", "Documentation", "RemainAfterElapse", "WantedBy", "Type"}
_NO_COUNTERPART = "has no counterpart in Drover"
_CHECK = "check whether the command needs it"
_ADVICE = {
    "User": "set `runtime: {type: host-user, run_as: NAME}` if the command needs that user",
    "Group": "set `runtime: {type: host-user, run_as: NAME}` if the command needs that group",
    "EnvironmentFile": f"set the variables in `env`, and secrets with `{PROGRAM} credential set`",
    "AccuracySec": "nothing: Drover fires at the time itself",
    "WakeSystem": "nothing wakes the machine: keep the timer if it must",
    "OnFailure": "set [[notify]] in config.toml",
}
_SPECIFIER = re.compile(r"%([A-Za-z%])")
_VARIABLE = re.compile(r"\$(\$|\{[A-Za-z_]\w*\}|[A-Za-z_]\w*)")
TIMEOUT = "1d"


def read_timers(
    files: Iterable[SourceFile], services: Services, context: ImportContext
) -> Imported:
    """One agent for each timer; `services` finds the units that they start."""
    found = Imported()
    for file in files:
        found += _TimerReader(file, services, context).read()
    return found


class _TimerReader:
    def __init__(self, file: SourceFile, services: Services, context: ImportContext) -> None:
        self._file, self._services, self._context = file, services, context
        self._report: list[ReportLine] = []
        self._errors: list[ReportLine] = []
        self._unit = file.name.rpartition("/")[2].removesuffix(".timer")

    def read(self) -> Imported:
        settings = read_unit(self._file.name, self._file.text, self._errors)
        timer = [one for one in settings if one.section == "Timer"]
        last = {one.key: one.value for one in settings}
        schedules, only_weekdays = self._schedules(timer)
        service = last.get("Unit", f"{self._unit}.service")
        command = self._service(service)
        if command is None or not timer:
            if not timer:
                why = "has no section [Timer]"
                self._refuse(0, "Timer", why, "name a timer, or its directory")
            return Imported((), tuple(self._report), tuple(self._errors))
        script, fields = command
        if only_weekdays:
            days = "|".join(str(day) for day in sorted(only_weekdays))
            script = f'case "$(date +%w)" in {days}) ;; *) exit 0 ;; esac\n{script}'
        agent = ImportedAgent(
            key=self._unit,
            name=slug(self._unit),
            file=self._file.name,
            line=timer[0].line,
            description=last.get("Description", f"Timer {self._unit}"),
            body=script,
            fields=fields,
            schedules=schedules,
            # A template: %i in its commands is the name of an instance.
            needs_work=self._unit.endswith("@"),
        )
        return Imported((agent,), tuple(self._report), tuple(self._errors))

    # --- the timer --------------------------------------------------------------------------

    def _schedules(
        self, timer: list[UnitSetting]
    ) -> tuple[tuple[ImportedSchedule, ...], frozenset[int]]:
        common = self._common(timer)
        found: list[ImportedSchedule] = []
        only_weekdays: frozenset[int] = frozenset()
        for one in timer:
            try:
                if one.key == "OnCalendar":
                    event = parse_calendar(one.value, self._context.host_zone)
                    found.append(self._calendar(one, event, common, len(found)))
                    only_weekdays |= event.only_weekdays
                elif one.key in ("OnUnitActiveSec", "OnUnitInactiveSec"):
                    found.append(self._interval(one, common, len(found)))
                elif one.key in _FIRST_FIRES:
                    why = "Drover does not count from the start of the machine or of a service"
                    advice = "nothing if the timer has an interval: its first run starts at once"
                    self._remark(one.line, one.key, why, advice)
            except CalendarError as error:
                self._refuse(one.line, one.key, str(error), "write a schedule of Drover by hand")
        return tuple(found), only_weekdays

    def _calendar(
        self, one: UnitSetting, event: CalendarEvent, common: dict[str, object], number: int
    ) -> ImportedSchedule:
        for note in event.notes:
            self._remark(one.line, one.key, note, "nothing, or write another schedule")
        if event.only_weekdays:
            why = "requires a date and a weekday; the script ends on other weekdays"
            self._remark(one.line, one.key, why, "keep the check at the top of the script")
        cron = event.cron
        clock = clock_change_settings(cron, event.expression) if cron else {}
        return ImportedSchedule(
            name=_numbered("timer", number),
            old=one.value,
            expression=event.expression,
            timezone=event.timezone,
            settings={**common, **clock},
            old_fires=CronFires(cron, event.timezone) if cron else no_fires,
        )

    def _interval(
        self, one: UnitSetting, common: dict[str, object], number: int
    ) -> ImportedSchedule:
        every = parse_span(one.value)
        if every % timedelta(seconds=1):
            raise CalendarError(f"{one.value[:40]!r}: Drover counts whole seconds")
        from_start = one.key == "OnUnitActiveSec"
        trigger = IntervalTrigger(one.value, every, "start" if from_start else "completion")
        settings = {key: value for key, value in common.items() if key != "catch_up"}
        return ImportedSchedule(
            name=_numbered("timer", number),
            old=f"{one.key}={one.value}",
            expression=trigger.expression,
            settings=settings,
            old_fires=IntervalFires(every),
        )

    def _common(self, timer: list[UnitSetting]) -> dict[str, object]:
        """Settings that apply to all schedules of the timer; others are reported."""
        found: dict[str, object] = {"catch_up": "skip"}
        handled = _FIRST_FIRES | _IGNORED | {"OnCalendar", "OnUnitActiveSec", "OnUnitInactiveSec"}
        for one in timer:
            if one.key == "Persistent":
                if one.value.lower() in ("true", "yes", "on", "1"):
                    found |= {"catch_up": "last", "catch_up_window": "366d"}
            elif one.key == "RandomizedDelaySec":
                self._add_jitter(one, found)
            elif one.key not in handled:
                self._remark(one.line, one.key, _NO_COUNTERPART, _ADVICE.get(one.key, _CHECK))
        return found

    def _add_jitter(self, one: UnitSetting, found: dict[str, object]) -> None:
        if one.value.strip("0") in ("", "s"):
            return
        try:
            found["jitter"] = f"{parse_span(one.value).total_seconds():g}s"
        except CalendarError as error:
            self._remark(one.line, one.key, str(error), "set `jitter` of the schedule")

    # --- the service ------------------------------------------------------------------------

    def _service(self, name: str) -> tuple[str, dict[str, object]] | None:
        """The script and the fields of the agent; None if the service cannot be imported."""
        file = self._services(name)
        if file is None:
            why = f"the service {name[:60]!r} is not beside the timer"
            self._refuse(0, "Unit", why, "import a directory that has both")
            return None
        settings = [
            one
            for one in read_unit(file.name, file.text, self._errors)
            if one.section in ("Service", "Unit")
        ]
        lines, env = self._service_lines(file.name, settings)
        if not lines:
            self._errors.append(
                ReportLine(file.name, 0, "ExecStart", "is missing", "write the command by hand")
            )
            return None
        fields: dict[str, object] = {"timeout": self._timeout(settings)}
        return "\n".join(lines) + "\n", fields | ({"env": env} if env else {})

    def _service_lines(
        self, file: str, settings: list[UnitSetting]
    ) -> tuple[list[str], dict[str, str]]:
        lines: list[str] = []
        env: dict[str, str] = {}
        start: list[str] = []
        commands = {"ExecStartPre", "ExecStart", "ExecStartPost"}
        for key in ("ExecStartPre", "ExecStart", "ExecStartPost"):
            lines += [self._command(file, one) for one in settings if one.key == key]
        if not any(one.key == "ExecStart" for one in settings):
            lines = []
        for one in settings:
            if one.key == "WorkingDirectory":
                path = one.value.removeprefix("-")
                ending = "" if one.value.startswith("-") else " || exit 200"
                start.append(f"cd {'' if path == '~' else shlex.quote(path)}{ending}".strip())
            elif one.key == "Environment":
                env |= self._environment(file, one)
            elif one.key not in commands | _IGNORED | {"TimeoutStartSec", "RuntimeMaxSec"} and (
                one.section == "Service" or one.key == "OnFailure"
            ):
                advice = _ADVICE.get(one.key, _CHECK)
                self._report.append(ReportLine(file, one.line, one.key, _NO_COUNTERPART, advice))
        return [*start, "set -e", *lines] if lines and len(lines) > 1 else [*start, *lines], env

    def _timeout(self, settings: list[UnitSetting]) -> str:
        for one in reversed(settings):
            if one.key in ("RuntimeMaxSec", "TimeoutStartSec"):
                try:
                    return f"{parse_span(one.value).total_seconds():g}s"
                except CalendarError:
                    continue  # infinity
        return TIMEOUT

    def _environment(self, file: str, one: UnitSetting) -> dict[str, str]:
        found: dict[str, str] = {}
        for word in _split(one.value):
            name, equals, value = word.partition("=")
            if not equals or not re.fullmatch(r"[A-Za-z_]\w*", name, re.ASCII):
                continue
            if looks_secret(name):
                why = f"{name} looks like a secret; left out"
                advice = f"store it with `{PROGRAM} credential set`"
                self._report.append(ReportLine(file, one.line, one.key, why, advice))
            else:
                found[name] = value.replace("%%", "%")
        return found

    def _command(self, file: str, one: UnitSetting) -> str:
        """A command line of systemd, which starts a program without a shell, as a line of sh."""
        prefix = one.value[: len(one.value) - len(one.value.lstrip("@-:+!|"))]
        if set(prefix) - {"-"}:
            why = f"the prefix {prefix!r} has no counterpart"
            self._report.append(ReportLine(file, one.line, one.key, why, _CHECK))
        text = one.value[len(prefix) :]
        names = {"n": f"{self._unit}.service", "N": self._unit, "p": self._unit, "%": "%"}
        used = dict.fromkeys(found[1] for found in _SPECIFIER.finditer(text))
        for letter in (letter for letter in used if letter not in names):
            why = f"the specifier %{letter} is not replaced"
            self._report.append(ReportLine(file, one.line, one.key, why, "write its value"))
        text = _SPECIFIER.sub(lambda found: names.get(found[1], found[0]), text)
        line = " ".join(_shell_word(word) for word in _split(text))
        return f"{line} || true" if "-" in prefix else line

    def _remark(self, line: int, name: str, why: str, advice: str) -> None:
        self._report.append(ReportLine(self._file.name, line, name, why, advice))

    def _refuse(self, line: int, name: str, why: str, advice: str) -> None:
        self._errors.append(ReportLine(self._file.name, line, name, why, advice))


def _numbered(name: str, number: int) -> str:
    return name if number == 0 else f"{name}-{number + 1}"


def _split(text: str) -> list[str]:
    try:
        return shlex.split(text)
    except ValueError:  # a quote that is not closed
        return text.split()


def _shell_word(word: str) -> str:
    """A word in quotes for sh; variables are replaced as systemd does, and nothing else is."""
    if not _VARIABLE.search(word):
        return shlex.quote(word)
    if re.fullmatch(r"\$[A-Za-z_]\w*", word):
        return word  # systemd splits the value of a variable that is a word of its own
    parts, end = [], 0
    for found in _VARIABLE.finditer(word):
        parts.append(_in_double_quotes(word[end : found.start()]))
        parts.append("\\$" if found[1] == "$" else found[0])
        end = found.end()
    return '"' + "".join(parts) + _in_double_quotes(word[end:]) + '"'


def _in_double_quotes(text: str) -> str:
    return re.sub(r'([\\"`$])', r"\\\1", text)


def _has_timers(source: Source, _context: ImportContext) -> bool:
    return source.has("*.timer")


def _read_source(source: Source, context: ImportContext) -> Imported:
    def find(name: str) -> SourceFile | None:
        """A unit beside the timers: the name is a text of a file, and must not be a path."""
        return None if "/" in name else source.file(name)

    found = read_timers(source.files("*.timer"), find, context)
    return found + Imported(report=tuple(_unread_drop_ins(source)))


def _unread_drop_ins(source: Source) -> Iterator[ReportLine]:
    """The directories `NAME.timer.d` and `NAME.service.d`, whose files change a unit."""
    if not source.path:
        return
    directory = source.path if source.is_directory else source.path.parent
    for timer in (name for name in source.names if name.endswith(".timer")):
        for unit in (timer, f"{timer.removesuffix('.timer')}.service"):
            if (directory / f"{unit}.d").is_dir():
                why = "changes of a unit in a directory beside it are not read"
                advice = "write them into the unit before the import, or into the agent after it"
                yield ReportLine(f"{unit}.d", 0, "directory", why, advice)


SYSTEMD = Format("systemd timers", _has_timers, _read_source)
