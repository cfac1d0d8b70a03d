"""The program `drover`: finds the project and calls the management command.

`drover --version`, `drover --help` and completion do not import Django, which takes a second.
"""

import contextlib
import os
import runpy
import shlex
import sys
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from setproctitle import setproctitle

from agents_app import __version__
from agents_app.errors import DroverError
from agents_app.names import closest
from agents_app.text import harmless
from scheduler_project import command_table as table
from scheduler_project.project_directory import find_place, remember

if TYPE_CHECKING:
    from django.core.management.base import BaseCommand

USAGE_ERROR, INTERRUPTED = 2, 130
# The options of `drover` itself and the variables that they set.
OPTIONS = {
    "--project": "DROVER_PROJECT",
    "--data": "DROVER_DATA",
    "--url": "DROVER_URL",
    "--token": "DROVER_TOKEN",
    "--token-file": "DROVER_TOKEN_FILE",
}
PATHS = frozenset({"DROVER_PROJECT", "DROVER_DATA", "DROVER_TOKEN_FILE"})
OF_THIS_MACHINE, OF_A_REMOTE = frozenset({"--project", "--data"}), frozenset({"--url"})
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
    given: set[str] = set()
    rest = iter(words)
    for word in rest:
        option, equals, value = word.partition("=")
        if word == "--" or word in HAVE_SUCH_OPTIONS:
            kept += [word, *rest]
            break
        if option not in OPTIONS:
            kept.append(word)
            continue
        value = value if equals else next(rest, "")
        if not value:
            _usage_error(f"{option} needs a value")
        variable = OPTIONS[option]
        os.environ[variable] = str(Path(value).absolute()) if variable in PATHS else value
        given.add(option)
    _settle(given, kept)
    return kept


def _settle(given: set[str], words: Sequence[str]) -> None:
    """Options win over variables, also over those of another way to name the same thing."""
    if given & OF_THIS_MACHINE:
        if given & OF_A_REMOTE:
            _usage_error("--url is a remote Drover: leave --project and --data out")
        os.environ.pop("DROVER_URL", None)
    if "--token" in given:
        _hide_token(words)
    elif "--token-file" in given:
        os.environ.pop("DROVER_TOKEN", None)


def _hide_token(words: Sequence[str]) -> None:
    """Replace the command line that other users see in the list of processes."""
    setproctitle(shlex.join(["drover", *words]))
    sys.stderr.write(
        "drover: warning: until now other users of this machine could see the token in the list "
        "of processes, and your shell may keep it: use DROVER_TOKEN or --token-file FILE\n"
    )


def help_text() -> str:
    options = "[--project DIR] [--data DIR] [--url URL [--token-file FILE]]"
    lines = [f"usage: drover {options} COMMAND ...", ""]
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
        "With --url or DROVER_URL, these commands go to another Drover through its API:",
        f"{', '.join(sorted(table.REMOTE))}. Its token is read from DROVER_TOKEN, or",
        "from the file --token-file or DROVER_TOKEN_FILE. --token TOKEN works, too, but other",
        "users of this machine may see it in the list of processes: prefer the variable.",
        "",
        "drover --version prints the version.",
    ]
    return "\n".join(lines) + "\n"


def _call(name: str, arguments: list[str]) -> None:
    asks_for_help = bool({"-h", "--help"} & set(arguments))
    if os.environ.get("DROVER_URL") and name not in table.WITHOUT_PROJECT and not asks_for_help:
        _call_remote(name, arguments)
        return
    if name == "manage":
        _enter_project()
        call_django(["drover manage", *arguments])
        return
    if not table.is_command(name):
        _unknown(name)
    if name in table.WITHOUT_PROJECT or asks_for_help:
        with tempfile.TemporaryDirectory(prefix="drover-") as empty:
            os.environ["DROVER_DATA"] = os.environ.get("DROVER_DATA") or empty
            _run(name, arguments)
        return
    _enter_project(remembered=name == "up")
    _run(name, arguments)


def _call_remote(name: str, arguments: list[str]) -> None:
    if name not in table.REMOTE:
        if not table.is_command(name):
            _unknown(name)
        _usage_error(
            f"`drover {name}` works on the machine of its Drover only. With --url or DROVER_URL "
            f"there are {', '.join(sorted(table.REMOTE))}; name a project of this machine with "
            "--project DIR, or unset DROVER_URL"
        )
    # Its client of HTTP takes as long to import as the rest of this program.
    from agents_app import remote

    sys.exit(remote.call(name, arguments, remote.read_address(os.environ)))


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
    with contextlib.suppress(DroverError):
        if os.environ.get("DROVER_URL"):
            from agents_app import remote

            names = remote.list_names(words[0], remote.read_address(os.environ))
            sys.stdout.write("".join(f"{name}\n" for name in names if name.isprintable()))
            return
        _enter_project()
        program = Path(__file__).resolve().parent.parent / "agents_app" / "cli" / "names.py"
        # By its path: the import of its package would load Django.
        sys.argv = [str(program), *words[:2]]
        runpy.run_path(str(program), run_name="__main__")


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
