"""Completion scripts for shells, generated from the parsers of the commands.

A script is a table of lines and shell functions that search the table:

    V|path|word|help         a word that may follow the path (a command or a subcommand)
    O|path|option|what|help  an option; `what` is the kind of its value, empty without one
    P|path|place|what        a positional argument; place `*` is any number of arguments

`what` is `=` and the choices, `@agents`, `@schedules`, `@tenants`, `@files`, or `?`: anything.
"""

import argparse
from collections.abc import Iterator
from importlib.resources import files
from shlex import quote

from django.core.management import get_commands, load_command_class
from django.core.management.base import BaseCommand, CommandParser

from agents_app.cli.examples import parsers_of, verbs_of

SHELLS = ("bash", "zsh", "fish")
APP = "agents_app"
AGENTS, SCHEDULES, TENANTS, FILES, ANYTHING = "@agents", "@schedules", "@tenants", "@files", "?"
BY_METAVAR = {"AGENT": AGENTS, "RUN|AGENT": AGENTS, "FILE": FILES, "PATH": FILES}
BY_OPTION = {"tenant": TENANTS, "agent": AGENTS}
# The kind of the argument NAME, by command.
BY_COMMAND = {"schedule": SCHEDULES, "why": SCHEDULES, "tenant": TENANTS}
# Django's options of every command, which are not completed.
NOT_OFFERED = {"version", "verbosity", "settings", "pythonpath", "traceback", "force_color"}


def script(shell: str, python: str, root: str, program: str) -> str:
    """`program` is what the user calls: `drover`, or the path of manage.py after that of Python."""
    text = files("agents_app.cli").joinpath(f"completion.{shell}").read_text()
    lines = "\n".join(table())
    if shell == "fish":  # within single quotes
        lines = lines.replace("\\", "\\\\").replace("'", "\\'")
    text = text.replace("@PYTHON@", quote(python)).replace("@ROOT@", quote(root))
    text = text.replace("@PROGRAM@", program)
    return text.replace("@TABLE@", lines)


def table() -> list[str]:
    lines = []
    for name in own_commands():
        parser = loaded(name).create_parser("manage.py", name)
        lines.append(_line("V", "", name, parser.description or ""))
        if "_" in name:  # as `drover` spells it
            lines.append(_line("V", "", name.replace("_", "-"), parser.description or ""))
        for path, one in parsers_of(parser, name):
            lines += _lines_of(path, one)
    return lines


def own_commands() -> list[str]:
    return sorted(name for name, app in get_commands().items() if app == APP)


def loaded(name: str) -> BaseCommand:
    return load_command_class(APP, name)


def _lines_of(path: str, parser: CommandParser) -> Iterator[str]:
    for action in parser._actions:
        if isinstance(action, argparse._SubParsersAction):
            helps = {choice.dest: choice.help for choice in action._choices_actions}
            for verb in verbs_of(parser):
                yield _line("V", path, verb, helps.get(verb) or "")
        elif action.option_strings and action.dest not in NOT_OFFERED:
            for option in action.option_strings:
                yield _line("O", path, option, _what(path, action), action.help or "")
    yield from _positionals(path, parser)


def _positionals(path: str, parser: CommandParser) -> Iterator[str]:
    place = 0
    for action in parser._get_positional_actions():
        if not isinstance(action, argparse._SubParsersAction):
            place += 1
            several = action.nargs in {"*", "+"}
            yield _line("P", path, "*" if several else str(place), _what(path, action))


def _what(path: str, action: argparse.Action) -> str:
    """The kind of the value, as in the table."""
    if action.nargs == 0:
        return ""
    if action.choices:
        return "=" + " ".join(map(str, action.choices))
    if action.option_strings:
        return BY_OPTION.get(action.dest) or BY_METAVAR.get(str(action.metavar), ANYTHING)
    if action.metavar == "NAME":
        return BY_COMMAND.get(path.split()[0], ANYTHING)
    return BY_METAVAR.get(str(action.metavar), ANYTHING)


def _line(*fields: str) -> str:
    return "|".join(
        " ".join(field.replace("%%", "%").replace("|", "/").split()) for field in fields
    )
