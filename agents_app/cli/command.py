"""The base of Drover's commands: one line for an error, --json and --tenant, hints sent."""

import contextlib
import getpass
import io
import logging
import os
import sys
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from typing import Any

from django.core.management.base import BaseCommand, CommandError, CommandParser
from django.db import DatabaseError

from agents_app.cli.examples import add_examples
from agents_app.cli.screen import Screen
from agents_app.errors import ConfigError, DroverError, Refused
from agents_app.events import relay
from agents_app.models import DEFAULT_TENANT
from agents_app.text import harmless

INTERRUPTED = 130


class DroverCommand(BaseCommand):
    # What a command needs it checks itself, in one line; `doctor` does all the checks.
    requires_system_checks: list[str] = []
    _plain = False
    # What people may type after `manage.py`, and what it is for; shown by --help.
    examples: tuple[tuple[str, str], ...] = ()

    def create_parser(self, prog_name: str, subcommand: str, **kwargs: Any) -> CommandParser:
        parser = super().create_parser(prog_name, subcommand, **kwargs)
        add_examples(parser, subcommand, self.examples)
        return parser

    def add_arguments(self, parser: CommandParser) -> None:
        self.add_common(parser)

    def add_common(self, parser: CommandParser) -> None:
        parser.add_argument("--json", action="store_true", help="Print JSON, for programs.")
        parser.add_argument("--tenant", default=DEFAULT_TENANT, help="Whose agents (default).")

    def execute(self, *args: Any, **options: Any) -> str | None:
        try:
            return self._execute(*args, **options)
        except DroverError as error:
            # From a shell manage.py prints it; Python code gets what commands promise to raise.
            if getattr(self, "_called_from_command_line", False):
                raise
            raise CommandError(str(error)) from error
        except KeyboardInterrupt:
            sys.exit(INTERRUPTED)
        except BrokenPipeError:
            _forget_stdout()
            sys.exit(1)
        finally:
            relay.drain()

    def _execute(self, *args: Any, **options: Any) -> str | None:
        _refuse_broken_text(options)
        self._plain = bool(options.get("no_color"))
        if isinstance(sys.stdout, io.TextIOWrapper):
            # An agent may print what the terminal's encoding lacks: show it, do not fail.
            sys.stdout.reconfigure(errors="backslashreplace")
        try:
            with _only_warnings():
                return super().execute(*args, **options)
        except DatabaseError as error:
            raise ConfigError(
                f"the database cannot be used: {' '.join(str(error).split())} "
                "(manage.py doctor says what to do)"
            ) from error
        except BrokenPipeError:
            raise
        except OSError as error:
            raise ConfigError(f"cannot go on: {error}") from error

    @property
    def screen(self) -> Screen:
        return Screen(self.stdout, colour=self._has_colours)

    @property
    def _has_colours(self) -> bool:
        return not (self._plain or os.environ.get("NO_COLOR"))

    @property
    def now(self) -> datetime:
        return datetime.now(UTC)

    @property
    def by(self) -> str:
        """Who is asking, for the journal."""
        try:
            return getpass.getuser()
        except (KeyError, OSError):
            return f"user {os.getuid()}"

    def result(self, text: str, value: object, *, json: bool) -> None:
        """The same thing, for whoever asked."""
        if json:
            self.screen.json(value)
        else:
            self.screen.say(text)

    def remark(self, text: str) -> None:
        """Beside the result: a pipe that reads the result does not get it."""
        self.stderr.write(harmless(text))

    @contextlib.contextmanager
    def progress(self, label: str, total: int) -> Iterator[Callable[[int], None]]:
        """A bar for who watches; it is told how many are done."""
        if total < 2 or not self.stderr.isatty():
            yield lambda _done: None
            return
        from agents_app.cli import terminal  # a pipe should not pay for it

        with terminal.bar(self.stderr, label, total, colour=self._has_colours) as tell:
            yield tell


@contextlib.contextmanager
def _only_warnings() -> Iterator[None]:
    """A person reads what the command says; the log lines of the same act are for servers."""
    logger = logging.getLogger("drover")
    before = logger.level
    logger.setLevel(logging.WARNING)
    try:
        yield
    finally:
        logger.setLevel(before)


def _refuse_broken_text(options: dict[str, Any]) -> None:
    """A shell passes any bytes on; the database takes text only."""
    for name, value in options.items():
        if isinstance(value, str) and not _is_text(value):
            raise Refused(f"{name}: this is not valid UTF-8: {value[:80]!a}")


def _is_text(value: str) -> bool:
    try:
        value.encode()
    except UnicodeEncodeError:
        return False
    return "\0" not in value


def _forget_stdout() -> None:
    """Whoever read our output went away; Python must not try to flush the rest at its end."""
    with contextlib.suppress(OSError, ValueError):
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
