"""What a signal is: its name, fields, handler and shell command, and what the exit codes mean."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Literal

from agents_app.models import Run
from agents_app.signals.fields import Fields, SignalField


@dataclass(frozen=True, slots=True)
class Reply:
    """The answer to a signal.

    A reply that is not `done` is asked for again until it is, for at most `wait_seconds`: a run
    that waits holds neither a thread nor a transaction in the meantime."""

    content: Mapping[str, Any]
    done: bool = True
    wait_seconds: float = 0.0


@dataclass(frozen=True, slots=True)
class CommandOption:
    """`--name PLACEHOLDER` of a shell command.

    `check` is what the script demands of the value. A flag has no value. `timeout` is how long
    the script repeats the request and is sent in parts; other values are sent as `field`."""

    name: str
    placeholder: str = ""
    check: Literal["integer", "number", "flag", "timeout"] = "integer"

    @property
    def field(self) -> str:
        return self.name.replace("-", "_")

    @property
    def usage(self) -> str:
        return f"[--{self.name} {self.placeholder}]" if self.placeholder else f"[--{self.name}]"


@dataclass(frozen=True, slots=True)
class Command:
    """How the script `drover` takes a signal from the command line.

    `parser` names the shell function `parse_<parser>`: `text` sends all arguments or standard
    input as `field`; `words` sends each argument as `field` and the options as theirs, after
    `check_<check>` has looked at them; `agent_text` and `percent_text` take one argument and an
    optional text, `key_text` one argument and a text."""

    arguments: str = ""
    field: str = ""
    options: tuple[CommandOption, ...] = ()
    parser: Literal["words", "text", "agent_text", "percent_text", "key_text"] = "words"
    check: Literal["nothing", "one_word", "exit_code", "usage", "inbox", "calls"] = "nothing"
    timeout_seconds: int = 0
    aliases: tuple[str, ...] = ()
    # Further lines of help: usage and explanation.
    more_usage: tuple[tuple[str, str], ...] = ()


# Enough for every signal whose text is cut or has a small limit; and for one with a text of a
# megabyte in which JSON escapes characters.
SMALL_BODY_BYTES, LARGE_BODY_BYTES = 256 * 1024, 4 * 2**20


@dataclass(frozen=True, slots=True)
class Signal:
    """One signal. `handler(run, now, **values)` gets the value of every declared field.

    `cancel_wait(run, fields)` is called when a client no longer waits for a reply.
    `repeatable`: sending it twice does no harm, so the script retries after a broken connection.
    `without_gateway`: what the script does if there is no gateway. It fails (`refuse`), succeeds
    without effect (`accept`), or writes a file, which `columns_from_file` turns into columns of
    the run when the run has ended (`file`)."""

    name: str
    summary: str
    details: str
    handler: Callable[..., Reply]
    fields: tuple[SignalField, ...] = ()
    command: Command = Command()
    answer: str = '`{"ok": true}`'
    cancel_wait: Callable[[Run, Fields], None] | None = None
    repeatable: bool = True
    without_gateway: Literal["refuse", "accept", "file"] = "refuse"
    columns_from_file: Callable[[str], dict[str, Any]] | None = None
    body_limit_bytes: int = SMALL_BODY_BYTES


@dataclass(frozen=True, slots=True)
class ExitCode:
    """An exit code of the script, and the HTTP statuses that lead to it."""

    name: str
    code: int
    meaning: str
    statuses: tuple[str, ...] = ()


EXIT_CODES = (
    ExitCode("OK", 0, "ok", ("2??",)),
    ExitCode("REJECTED", 1, "conflict or rejected", ("409",)),
    ExitCode("NOT_FOUND", 2, "not found", ("404",)),
    ExitCode("FORBIDDEN", 3, "forbidden", ("401", "403")),
    ExitCode("BAD_REQUEST", 4, "bad request", ("400", "413", "422")),
    ExitCode("NOT_READY", 5, "not ready or no gateway", ("503",)),
    ExitCode("UNREACHABLE", 6, "unreachable"),
    ExitCode("UNEXPECTED", 7, "unexpected"),
    ExitCode("TIMED_OUT", 8, "wait timed out"),
    ExitCode("USAGE", 9, "usage"),
    ExitCode("BAD_GATEWAY", 10, "for a 502", ("502",)),
    ExitCode("GATEWAY_TIMEOUT", 11, "for a 504", ("504",)),
    ExitCode("SERVER_ERROR", 12, "for a 500", ("500",)),
)
