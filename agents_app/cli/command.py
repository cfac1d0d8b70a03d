"""The base of Drover's commands: --json, --tenant, one-line errors, and delivery of hints."""

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
from agents_app.conf import PROGRAM
from agents_app.console import INTERRUPTED, Screen, add_common
from agents_app.database import has_tables
from agents_app.errors import ConfigError, DroverError, Refused
from agents_app.events import relay
from agents_app.models import DEFAULT_TENANT
from agents_app.text import harmless


class DroverCommand(BaseCommand):
    # A command reports what is missing in one line; `doctor` runs all checks.
    requires_system_checks: list[str] = []
    _plain = False
    # Command lines without `manage.py`, each with its purpose; shown by --help.
    examples: tuple[tuple[str, str], ...] = ()

    def create_parser(self, prog_name: str, subcommand: str, **kwargs: Any) -> CommandParser:
        parser = super().create_parser(prog_name, subcommand, **kwargs)
        add_examples(parser, subcommand, self.examples)
        return parser

    def add_arguments(self, parser: CommandParser) -> None:
        self.add_common(parser)

    def add_common(self, parser: CommandParser) -> None:
        add_common(parser, DEFAULT_TENANT)

    def execute(self, *args: Any, **options: Any) -> str | None:
        try:
            return self._execute(*args, **options)
        except DroverError as error:
            # On the command line manage.py prints the error; call_command() expects CommandError.
            if getattr(self, "_called_from_command_line", False):
                raise
            raise CommandError(str(error)) from error
        except KeyboardInterrupt:
            sys.exit(INTERRUPTED)
        except BrokenPipeError:
            _discard_stdout()
            sys.exit(1)
        finally:
            relay.drain()

    def _execute(self, *args: Any, **options: Any) -> str | None:
        _refuse_invalid_text(options)
        self._plain = bool(options.get("no_color"))
        if isinstance(sys.stdout, io.TextIOWrapper):
            # Output of agents may contain characters that the terminal's encoding lacks.
            sys.stdout.reconfigure(errors="backslashreplace")
        try:
            with _warnings_only():
                return super().execute(*args, **options)
        except DatabaseError as error:
            raise ConfigError(_database_problem(error)) from error
        except BrokenPipeError:
            raise
        except OSError as error:
            raise ConfigError(f"the command failed: {error}") from error

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
        """The user of the command, for events."""
        try:
            return getpass.getuser()
        except (KeyError, OSError):
            return f"user {os.getuid()}"

    def result(self, text: str, value: object, *, json: bool) -> None:
        """Prints the value as JSON, or else the text."""
        if json:
            self.screen.json(value)
        else:
            self.screen.say(text)

    def remark(self, text: str) -> None:
        """Writes to stderr, so that a pipe receives only the result."""
        self.stderr.write(harmless(text))

    @contextlib.contextmanager
    def progress(self, label: str, total: int) -> Iterator[Callable[[int], None]]:
        """A progress bar on a terminal; yields a function that takes the number of done items."""
        screen = Screen(self.stderr, colour=self._has_colours)
        with screen.progress(label, total) as report:
            yield report


@contextlib.contextmanager
def _warnings_only() -> Iterator[None]:
    """Hides log lines of level info: the command prints its own result."""
    logger = logging.getLogger("drover")
    before = logger.level
    logger.setLevel(logging.WARNING)
    try:
        yield
    finally:
        logger.setLevel(before)


def _database_problem(error: DatabaseError) -> str:
    with contextlib.suppress(DatabaseError):
        if not has_tables():
            return f"the database has no tables yet: start Drover once ({PROGRAM} up)"
    return f"the database cannot be used: {' '.join(str(error).split())} (run {PROGRAM} doctor)"


def _refuse_invalid_text(options: dict[str, Any]) -> None:
    """Shells pass arbitrary bytes; the database stores text only."""
    for name, value in options.items():
        if isinstance(value, str) and not _is_text(value):
            raise Refused(f"{name}: not valid UTF-8: {value[:80]!a}")


def _is_text(value: str) -> bool:
    try:
        value.encode()
    except UnicodeEncodeError:
        return False
    return "\0" not in value


def _discard_stdout() -> None:
    """The reader closed the pipe: Python must not flush the rest at exit."""
    with contextlib.suppress(OSError, ValueError):
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
