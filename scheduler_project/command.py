"""The program `drover`: finds the project and calls the management command.

`drover --version`, `drover --help` and completion do not import Django, which takes a second.
"""

import contextlib
import os
import runpy
import sys
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from agents_app import __version__
from agents_app.errors import ConfigError, DroverError
from agents_app.names import closest
from agents_app.text import harmless
from scheduler_project import command_table as table
from scheduler_project.project_directory import find_place, remember

if TYPE_CHECKING:
    from django.core.management.base import BaseCommand

USAGE_ERROR, INTERRUPTED = 2, 130
# The options of `drover` itself and the variables that they set.
OPTIONS = {"--project": "DROVER_PROJECT", "--data": "DROVER_DATA"}
PATHS = frozenset({"DROVER_PROJECT", "DROVER_DATA"})
HAVE_SUCH_OPTIONS = frozenset({"tenant", "manage"})
# Options that Django gives to every command; they work, and the help is shorter without them.
HIDDEN = {"version", "verbosity", "settings", "pythonpath", "traceback", "skip_checks"}
HIDDEN |= {"no_color", "force_color"}
SETTINGS = "scheduler_project.settings"


def main(argv: Sequence[str] | None = None) -> None:
    words = list(sys.argv[1:] if argv is None else argv)
    guarded(lambda: _main(words))


def guarded(call: Callable[[], None]) -> None:
    """An error of Drover is one line on standard error and the exit status 1."""
    try:
        call()
    except DroverError as error:
        sys.stderr.write(f"drover: {harmless(str(error))}\n")
        sys.exit(1)
    except KeyboardInterrupt:
        sys.exit(INTERRUPTED)


def call_django(argv: Sequence[str]) -> None:
    """A management command of Drover or Django, as `manage.py` calls it."""
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", SETTINGS)
    from django.core.management import execute_from_command_line

    execute_from_command_line(list(argv))


def _main(words: list[str]) -> None:
    words = take_options(words)
    if not words or words[0] in {"-h", "--help"} or words == ["help"]:
        sys.stdout.write(help_text())
    elif words[0] in {"--version", "version"}:
        sys.stdout.write(f"drover {__version__}\n")
    elif words[0] == "--names":
        _print_names(words[1:])
    elif words[0] == "help":
        _call(words[1], ["--help"])
    else:
        _call(words[0], words[1:])


def take_options(words: list[str]) -> list[str]:
    """Set the variables of the options of `drover`, and return the other words.

    After the commands that have such options themselves, and after `--`, words are left alone."""
    kept: list[str] = []
    rest = iter(words)
    for word in rest:
        option, equals, value = word.partition("=")
        if word == "--" or word in HAVE_SUCH_OPTIONS:
            return [*kept, word, *rest]
        if option not in OPTIONS:
            kept.append(word)
            continue
        value = value if equals else next(rest, "")
        if not value:
            _usage_error(f"{option} needs a value")
        variable = OPTIONS[option]
        os.environ[variable] = str(Path(value).absolute()) if variable in PATHS else value
    return kept


def help_text() -> str:
    lines = ["usage: drover [--project DIR] [--data DIR] COMMAND ...", ""]
    for title, commands in table.available().items():
        lines += [f"{title}:", *(f"  {name:17} {text}" for name, text in commands.items()), ""]
    lines += [
        "drover COMMAND --help explains a command and gives examples; most have --json.",
        "",
        "The project is --project, else DROVER_PROJECT, else the nearest directory at or above",
        "this one with .drover/, or with agents/ and config.toml, or of another known format.",
        "Its data are in --data, else DROVER_DATA, else the directory of the last start, else",
        ".drover/data in the project.",
        "",
        "drover --version prints the version.",
    ]
    return "\n".join(lines) + "\n"


def _call(name: str, arguments: list[str]) -> None:
    if name == "manage":
        _enter_project()
        call_django(["drover manage", *arguments])
        return
    if not table.is_command(name):
        _unknown(name)
    if name in table.WITHOUT_PROJECT or {"-h", "--help"} & set(arguments):
        with tempfile.TemporaryDirectory(prefix="drover-") as empty:
            os.environ["DROVER_DATA"] = os.environ.get("DROVER_DATA") or empty
            _run(name, arguments)
        return
    _enter_project(remembered=name == "up")
    _run(name, arguments)


def _enter_project(*, remembered: bool = False) -> None:
    """Set DROVER_PROJECT and DROVER_DATA to the project of the working directory."""
    place = find_place(os.environ, Path.cwd())
    if remembered or not place.is_new:
        remember(place)
    os.environ.update(place.variables)


def _run(name: str, arguments: list[str]) -> None:
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", SETTINGS)
    import django
    from django.core.management import load_command_class

    django.setup()
    command = load_command_class("agents_app", table.module_of(name))
    _hide_options_of_django(command)
    command.run_from_argv(["drover", name, *arguments])


def _hide_options_of_django(command: "BaseCommand") -> None:
    import argparse

    create = command.create_parser

    def create_parser(
        prog_name: str, subcommand: str, **options: object
    ) -> argparse.ArgumentParser:
        parser = create(prog_name, subcommand, **options)
        for action in parser._actions:
            if action.dest in HIDDEN:
                action.help = argparse.SUPPRESS
        return parser

    command.create_parser = create_parser  # type: ignore[assignment, method-assign]


def _print_names(words: list[str]) -> None:
    """For completion: the names of agents, schedules or tenants; nothing on an error."""
    with contextlib.suppress(ConfigError):
        _enter_project()
        names = Path(__file__).resolve().parent.parent / "agents_app" / "cli" / "names.py"
        # By its path: the import of its package would load Django.
        sys.argv = [str(names), *words[:2]]
        runpy.run_path(str(names), run_name="__main__")


def _unknown(name: str) -> None:
    if name in table.OF_AGENTS:
        _usage_error(
            f"`drover {name}` is a command of agents and works inside a run, where the directory "
            "of these commands is first on the PATH. This is the command of the operator; "
            "`drover --help` lists its commands"
        )
    if name.startswith("-"):
        _usage_error(f"there is no option {name}: `drover --help` lists the options")
    known = [each for commands in table.available().values() for each in commands]
    guess = closest(name, known)
    hint = f": did you mean `drover {guess}`?" if guess else ""
    _usage_error(f"there is no command {name!r}{hint} (`drover --help` lists the commands)")


def _usage_error(text: str) -> None:
    sys.stderr.write(f"drover: {harmless(text)}\n")
    sys.exit(USAGE_ERROR)


if __name__ == "__main__":
    main()
