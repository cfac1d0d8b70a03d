"""Reads crontabs: of users, of the system (with a user before the command), and of cron.d."""

import re
import shlex
from dataclasses import dataclass, field

from agents_app.conf import PROGRAM
from agents_app.errors import TriggerParseError
from agents_app.formats.agent_names import KeyCounter, name_of_command
from agents_app.formats.imported import (
    ImportContext,
    Imported,
    ImportedAgent,
    ImportedSchedule,
    looks_secret,
)
from agents_app.formats.model_commands import ModelCommand, recognise_model_command
from agents_app.formats.old_cron import (
    MACROS,
    OldCronError,
    Rewritten,
    clock_change_settings,
    parse_old_cron,
    rewrite,
)
from agents_app.formats.old_fires import CronFires
from agents_app.formats.report import ReportLine
from agents_app.formats.source_files import MAX_LINE, TOO_LONG
from agents_app.triggers import BOOT_EXPRESSION, zone

SCHEDULE = "crontab"
TIMEOUT = "1d"
_VARIABLE = re.compile(
    r"""\s*(?:"(?P<double>[^"]*)"|'(?P<single>[^']*)'|(?P<plain>[A-Za-z_]\w*))\s*=\s*(?P<value>.*)""",
    re.ASCII,
)
_JOB = re.compile(r"-?\s*(?P<when>@\S+|\S+\s+\S+\s+\S+\s+\S+\s+\S+)\s+(?P<command>\S.*)")
_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_USER = re.compile(r"[a-z_][a-z0-9_.-]*\$?")
_WHOLE_FILE = (
    (
        "command",
        "cron starts a command in the home directory of its user, with all rights of that user; "
        "Drover starts it in an empty directory and in a sandbox",
        "use absolute paths, and allow paths with `sandbox: {read: [...], write: [...]}`",
    ),
    (
        "overlap",
        "cron starts a command again while it still runs; Drover skips such a fire",
        "set `overlap` of the schedule and `scale` of the agent if parallel runs are wanted",
    ),
    (
        "timeout",
        f"cron never stops a command; Drover stops it after `timeout`, here {TIMEOUT}",
        "change `timeout` of agents that run longer",
    ),
)


def read_crontab(
    file: str, text: str, context: ImportContext, *, system: bool, prefix: str = ""
) -> Imported:
    """One agent for each line; `system` crontabs have a user before the command.

    `prefix` tells the keys of several files apart."""
    reader = CrontabReader(file, context, system=system, prefix=prefix)
    lines = text.split("\n")
    for number, line in enumerate(lines, 1):
        reader.read_line(number, line.rstrip("\r"))
    if lines[-1].strip():
        reader.remark(
            len(lines),
            "line end",
            "cron ignores the last line of a file that does not end with a newline",
            "check whether the command is wanted: it is imported",
        )
    return reader.result()


def is_system_crontab(text: str, users: frozenset[str]) -> bool:
    """Whether the word before every command is a user of this machine."""
    jobs = [_JOB.fullmatch(line.strip()) for line in text.split("\n") if _is_job(line)]
    commands = [job["command"].split(None, 1) for job in jobs if job]
    return bool(commands) and all(len(c) == 2 and c[0] in users for c in commands)


def _is_job(line: str) -> bool:
    return line.strip()[:1] not in ("", "#") and not _VARIABLE.fullmatch(line)


@dataclass
class _Variables:
    """The variables that apply to the lines below them."""

    env: dict[str, str] = field(default_factory=dict)
    shell: str = "/bin/sh"
    home: str = ""
    timezone: str = ""


class CrontabReader:
    """Reads line by line; a wrong line is reported, and the others are read."""

    def __init__(
        self, file: str, context: ImportContext, *, system: bool = False, prefix: str = ""
    ) -> None:
        self._file, self._context, self._system = file, context, system
        self._prefix = prefix
        self._variables = _Variables()
        self._comment = ""
        self._keys = KeyCounter()
        self._agents: list[ImportedAgent] = []
        self._report: list[ReportLine] = []
        self._errors: list[ReportLine] = []

    def result(self) -> Imported:
        whole = [ReportLine(self._file, 0, *one) for one in _WHOLE_FILE] if self._agents else []
        return Imported(tuple(self._agents), (*self._report, *whole), tuple(self._errors))

    def remark(self, line: int, name: str, why: str, advice: str) -> None:
        self._report.append(ReportLine(self._file, line, name, why, advice))

    def refuse(self, line: int, name: str, why: str, advice: str) -> None:
        self._errors.append(ReportLine(self._file, line, name, why, advice))

    def read_line(self, number: int, line: str) -> None:
        if problem := _unreadable(line):
            advice = "move the command to a script, or save the file as UTF-8 text"
            self.refuse(number, "line", problem, advice)
            return
        stripped = line.strip()
        if not stripped or stripped.startswith("#"):
            self._comment = stripped.strip("# \t")
            return
        comment, self._comment = self._comment, ""
        if variable := _VARIABLE.fullmatch(line):
            name = variable["double"] or variable["single"] or variable["plain"] or ""
            self._set_variable(number, name, _unquoted(variable["value"].strip()))
        elif job := _JOB.fullmatch(stripped):
            self._read_job(number, job["when"], job["command"], comment)
        else:
            fields = "five fields, a user and a command" if self._system else "five fields"
            advice = "write for example: 0 9 * * 1-5 COMMAND"
            self.refuse(number, "line", f"expected {fields} and a command", advice)

    # --- variables --------------------------------------------------------------------------

    def _set_variable(self, number: int, name: str, value: str) -> None:
        if name == "SHELL":
            self._variables.shell = value or "/bin/sh"
        elif name == "CRON_TZ":
            self._set_timezone(number, value)
        elif name in _NOT_HONOURED:
            self.remark(number, name, *_NOT_HONOURED[name])
        elif not _NAME.fullmatch(name) or name.startswith("DROVER_"):
            why = "is not a name that an agent's `env` may have"
            self.remark(number, name[:60], why, "set it in the script of the agent")
        elif looks_secret(name):
            why = "looks like a secret, which does not belong in a file of the project; left out"
            advice = f"store it with `{PROGRAM} credential set` and name it in `credentials`"
            self.remark(number, name, why, advice)
        else:
            self._variables.home = value if name == "HOME" else self._variables.home
            self._variables.env = {**self._variables.env, name: value}

    def _set_timezone(self, number: int, value: str) -> None:
        try:
            zone(value)
        except TriggerParseError as error:
            why = f"{error.reason}; the lines below are imported in the zone {self._zone_name}"
            self.remark(number, "CRON_TZ", why, "set `timezone` of their schedules")
        else:
            self._variables.timezone = value

    @property
    def _zone_name(self) -> str:
        return self._variables.timezone or self._context.host_zone

    # --- lines with a command ---------------------------------------------------------------

    def _read_job(self, number: int, when: str, rest: str, comment: str) -> None:
        user, command = "", rest
        if self._system:
            user, command = _split_user(rest)
            if not command or not _USER.fullmatch(user):
                why = f"expected a user and a command, not {rest[:60]!r}"
                self.refuse(number, "user", why, "import it with --format crontab if it has none")
                return
        try:
            schedules, only_weekdays = self._schedules(number, when)
        except OldCronError as error:
            advice = "cron ignores the line, too; correct it, or delete it"
            self.refuse(number, error.field, f"{when[:60]!r}: {error}", advice)
            return
        if user:
            self._remark_user(number, user)
        self._add_agent(number, user, command, comment, schedules, only_weekdays)

    def _remark_user(self, number: int, user: str) -> None:
        self.remark(
            number,
            "user",
            f"cron runs the command as {user}; Drover runs it as the user of Drover",
            f"set `runtime: {{type: host-user, run_as: {user}}}` if it needs that user",
        )

    def _schedules(
        self, number: int, when: str
    ) -> tuple[tuple[ImportedSchedule, ...], frozenset[int]]:
        if when.lower() == "@reboot":
            boot = ImportedSchedule(name=SCHEDULE, old=when, expression=BOOT_EXPRESSION)
            return (boot,), frozenset()
        if when.startswith("@") and when.lower() not in MACROS:
            raise OldCronError("macro", f"is not one of {', '.join(MACROS)}")
        cron = parse_old_cron(when, star_prefix_means_both=True)
        new = rewrite(cron, when)
        self._remark_days(number, when, new)
        schedule = ImportedSchedule(
            name=SCHEDULE,
            old=when,
            expression=new.expression,
            timezone=self._zone_name,
            settings={"catch_up": "skip", **clock_change_settings(cron, new.expression)},
            old_fires=CronFires(cron, self._zone_name),
        )
        return (schedule,), new.only_weekdays

    def _remark_days(self, number: int, when: str, new: Rewritten) -> None:
        if new.only_weekdays:
            why = (
                f"cron requires both day fields of {when!r} to match, and no expression of Drover "
                "does; the schedule has the dates, and the script ends on other weekdays"
            )
            self.remark(number, "day-of-week", why, "keep the check at the top of the script")
        elif "#" in new.expression:
            why = f"cron requires both day fields of {when!r} to match; written as nth weekdays"
            self.remark(number, "day-of-week", why, "nothing: the fires are the same")

    def _add_agent(
        self,
        number: int,
        user: str,
        command: str,
        comment: str,
        schedules: tuple[ImportedSchedule, ...],
        only_weekdays: frozenset[int],
    ) -> None:
        command, stdin = split_percent(command)
        name = name_of_command(command)
        fields: dict[str, object] = {"timeout": TIMEOUT}
        model = None if only_weekdays else recognise_model_command(command, stdin)
        if model:
            fields |= model_fields(model)
            self._remark_redirections(number, model)
        elif self._variables.shell != "/bin/sh":
            fields["command"] = [self._variables.shell, "./script.sh"]
        if self._variables.env:
            fields["env"] = self._variables.env
        script = _script(command, stdin, self._variables, only_weekdays)
        self._agents.append(
            ImportedAgent(
                key=self._keys.key("/".join(filter(None, (self._prefix, user, name)))),
                name=name,
                file=self._file,
                line=number,
                description=comment or f"Runs {name}",
                harness=model.harness if model else "shell",
                body=model.prompt if model else script,
                fields=fields,
                schedules=schedules,
            )
        )

    def _remark_redirections(self, number: int, model: ModelCommand) -> None:
        if model.redirections:
            why = f"{' '.join(model.redirections)}: Drover keeps the output of runs itself"
            self.remark(number, "redirection", why, f"read it with `{PROGRAM} logs`")


_NOT_HONOURED = {
    "MAILTO": (
        "Drover sends no mail with the output of a command",
        f"read the output with `{PROGRAM} logs`, or set [[notify]] in config.toml",
    ),
    "MAILFROM": ("Drover sends no mail", "set [[notify]] in config.toml"),
    "CONTENT_TYPE": ("Drover sends no mail", "set [[notify]] in config.toml"),
    "CONTENT_TRANSFER_ENCODING": ("Drover sends no mail", "set [[notify]] in config.toml"),
    "LOGNAME": ("cron does not let a crontab change it", "delete the line"),
    "RANDOM_DELAY": (
        "is a delay in minutes of some versions of cron",
        "set `jitter` of the schedules, for example jitter = '15m'",
    ),
}


def model_fields(model: ModelCommand) -> dict[str, object]:
    """The fields of an agent that runs a coding agent with its harness."""
    fields: dict[str, object] = {"model": model.model} if model.model else {}
    return fields | ({"harness_args": list(model.arguments)} if model.arguments else {})


def split_percent(command: str) -> tuple[str, str | None]:
    r"""The command, and its standard input after the first `%`; `\%` is a percent sign."""
    parts, current, escaped = [], "", False
    for char in command:
        if escaped:
            current += char if char == "%" else f"\\{char}"
            escaped = False
        elif char == "\\":
            escaped = True
        elif char == "%":
            parts.append(current)
            current = ""
        else:
            current += char
    parts.append(current + "\\" * escaped)
    stdin = "\n".join(parts[1:]) if len(parts) > 1 else None
    return parts[0].strip(), stdin


def _split_user(rest: str) -> tuple[str, str]:
    words = rest.split(None, 1)
    return (words[0], words[1]) if len(words) == 2 else (rest, "")


def _script(
    command: str, stdin: str | None, variables: _Variables, only_weekdays: frozenset[int]
) -> str:
    lines = []
    if only_weekdays:
        days = "|".join(str(day) for day in sorted(only_weekdays))
        clock = f"TZ={shlex.quote(variables.timezone)} date" if variables.timezone else "date"
        lines += [
            "# cron requires the date and the weekday to match; 0 is Sunday.",
            f'case "$({clock} +%w)" in {days}) ;; *) exit 0 ;; esac',
        ]
    if variables.home:
        lines.append(f"cd {shlex.quote(variables.home)} || exit 1")
    if stdin is None:
        lines.append(command)
    else:
        end = "END_OF_INPUT"
        while end in stdin:
            end += "_"
        newline = "" if stdin.endswith("\n") or not stdin else "\n"
        lines += ["{", command, f"}} <<'{end}'", f"{stdin}{newline}{end}"]
    return "\n".join(lines) + "\n"


def _unquoted(value: str) -> str:
    quoted = len(value) > 1 and value[0] == value[-1] and value[0] in "'\""
    return value[1:-1] if quoted else value


def _unreadable(line: str) -> str | None:
    if len(line) > MAX_LINE:
        return TOO_LONG
    if "\0" in line:
        return "contains a NUL character"
    if not line.isascii() and any("\ud800" <= char <= "\udfff" for char in line):
        return "is not UTF-8"
    return None
