"""The remote commands: their parsers, and the calls with what was parsed."""

import io
import os
import sys
from argparse import ArgumentParser
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

from agents_app.console import (
    READ_HELP,
    AnyOrder,
    Screen,
    add_common,
    add_logs,
    add_rerun,
    add_run,
    add_stat,
    add_stop,
    add_verbs,
    add_why,
)
from agents_app.errors import Refused
from agents_app.remote.address import Address
from agents_app.remote.connection import Connection
from agents_app.remote.fleet import stat
from agents_app.remote.logs import logs
from agents_app.remote.schedules import schedule
from agents_app.remote.session import Session
from agents_app.remote.work import rerun, run, stop


@dataclass(frozen=True, slots=True)
class RemoteCommand:
    add_arguments: Callable[[ArgumentParser], None]
    call: Callable[..., int]


class StandardOutput:
    """Standard output as the management commands write to it."""

    def write(self, text: str = "", /, *, ending: str | None = None) -> None:
        end = "\n" if ending is None else ending
        sys.stdout.write(text if end and text.endswith(end) else text + end)

    def flush(self) -> None:
        sys.stdout.flush()

    def isatty(self) -> bool:
        return sys.stdout.isatty()


def call(name: str, words: Sequence[str], address: Address) -> int:
    """The exit status of the command."""
    parser = ArgumentParser(prog=f"drover {name}")
    COMMANDS[name].add_arguments(parser)
    options = vars(parser.parse_args(words))
    if options.pop("tenant"):
        raise Refused("the token decides which tenant is used: leave --tenant out")
    if isinstance(sys.stdout, io.TextIOWrapper):
        # Output of agents may contain characters that the terminal's encoding lacks.
        sys.stdout.reconfigure(errors="backslashreplace")
    screen = Screen(StandardOutput(), colour=not os.environ.get("NO_COLOR"))
    for warning in address.warnings:
        sys.stderr.write(f"drover: {warning}\n")
    try:
        status = COMMANDS[name].call(Session(Connection(address), screen), **options)
        sys.stdout.flush()
    except BrokenPipeError:
        _discard_stdout()
        return 1
    return status


def list_names(kind: str, address: Address) -> list[str]:
    """For completion: the names of agents or schedules."""
    api = Connection(address, seconds=2)
    if kind == "agents":
        return [str(row["name"]) for row in api.pages("/agents", "agents")]
    if kind == "schedules":
        return [f"{row['agent']}/{row['name']}" for row in api.pages("/schedules", "schedules")]
    return []


def _discard_stdout() -> None:
    """The reader closed the pipe: Python must not flush the rest at exit."""
    with suppress(OSError, ValueError):
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _with_common(add: Callable[[ArgumentParser], None]) -> Callable[[ArgumentParser], None]:
    def add_arguments(parser: ArgumentParser) -> None:
        add(parser)
        add_common(parser, "")

    return add_arguments


def _add_schedule(parser: ArgumentParser) -> None:
    add_verbs(parser, AnyOrder, "")


def _add_why(parser: ArgumentParser) -> None:
    parser.add_argument("name", metavar="NAME", help=READ_HELP)
    add_why(parser)


def _why(session: Session, **options: Any) -> int:
    return schedule(session, verb="why", **options)


COMMANDS: Mapping[str, RemoteCommand] = {
    "stat": RemoteCommand(_with_common(add_stat), stat),
    "run": RemoteCommand(_with_common(add_run), run),
    "logs": RemoteCommand(_with_common(add_logs), logs),
    "stop": RemoteCommand(_with_common(add_stop), stop),
    "rerun": RemoteCommand(_with_common(add_rerun), rerun),
    "schedule": RemoteCommand(_add_schedule, schedule),
    "why": RemoteCommand(_with_common(_add_why), _why),
}
