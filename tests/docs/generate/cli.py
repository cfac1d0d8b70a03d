"""reference/cli.md from the parsers of the commands."""

import argparse
from collections.abc import Iterator
from functools import cache
from importlib import import_module

from django.core.management.base import BaseCommand

from agents_app.conf import ROOT
from tests.docs.generate.markdown import code, page, table

COMMANDS = ROOT / "agents_app" / "management" / "commands"
# Options that Django gives to every command.
_DJANGO = {
    "help",
    "version",
    "verbosity",
    "settings",
    "pythonpath",
    "traceback",
    "no_color",
    "force_color",
    "skip_checks",
}
_INTRODUCTION = """
Call a command as `drover COMMAND`. `drover --help` lists the commands in groups, and
`drover COMMAND --help` prints the same information as this page. A word with `_` may be written
with `-`. In a checkout `python manage.py COMMAND` is the same, with the environment of `make run`
active (`. .venv/bin/activate`) and without the search for the project.

## Project and data

`drover` finds the project itself: the nearest directory at or above the working directory that has
`.drover/`, or `agents/` beside `config.toml`, or agents in `agents/`, or the files of
[another format](../guides/run-existing-projects.md). The config.toml of an agent makes no project.
The data are in `.drover/data` in the project, unless another directory was named when Drover was
started: `.drover/data-directory` keeps its path, so that a second shell needs no variables.

| option | variable | meaning |
| --- | --- | --- |
| `--project DIR` | `DROVER_PROJECT` | The project directory. |
| `--data DIR` | `DROVER_DATA` | The data directory; `drover up` remembers it for the project. |

| `--url URL` | `DROVER_URL` | The address of another Drover. |
| `--token-file FILE` | `DROVER_TOKEN_FILE` | The file with the token for that Drover. |
| `--token TOKEN` | `DROVER_TOKEN` | The token itself; prefer the variable or the file. |

An option wins over its variable, and the variable over the search. `drover manage ...` calls a
command of Django, such as `drover manage createsuperuser`. Inside a run, `drover` is another
program, with the [commands of agents](signals.md).

## Another Drover

With `--url` or `DROVER_URL`, `stat`, `run`, `logs`, `schedule`, `rerun`, `stop` and `why` go to
another Drover through [its API](../guides/api.md#use-the-command-line). They need no project, and
print what they print on the machine of that Drover; times have whole seconds. The token decides
the tenant. Other commands are refused, and `--project` or `--data` chooses this machine again.

## Exit status and output

Commands exit with 0 on success, 1 when Drover refuses or finds a problem, 2 when the arguments are
wrong, and 130 after Ctrl-C. Errors are one line on standard error. `--json` prints one JSON
document on standard output. `--tenant` chooses the tenant; the default is `default`. Options
that Django gives to every command (`--settings`, `--traceback`, `--no-color` and so on) work and
are left out.
"""


def names() -> list[str]:
    return sorted(path.stem for path in COMMANDS.glob("[a-z]*.py"))


def command(name: str) -> BaseCommand:
    found = import_module(f"agents_app.management.commands.{name}").Command()
    assert isinstance(found, BaseCommand)
    return found


@cache
def parser_of(name: str) -> argparse.ArgumentParser:
    return command(name).create_parser("manage.py", name)


def actions(parser: argparse.ArgumentParser) -> Iterator[argparse.Action]:
    yield from (each for each in parser._actions if each.dest not in _DJANGO)


def render() -> str:
    overview = "## Commands\n\n" + table(
        ("command", "what it does"),
        ([f"[`{name}`](#{name})", command(name).help] for name in names()),
    )
    return page(
        "Command line",
        "the commands in agents_app/management/commands",
        _INTRODUCTION,
        overview,
        *(_section(name) for name in names()),
    )


def _section(name: str) -> str:
    parser = parser_of(name)
    verbs = [each for each in actions(parser) if isinstance(each, argparse._SubParsersAction)]
    parts = [f"## {name}", command(name).help]
    if verbs:
        parts += [_verb(name, verb, sub, verbs[0]) for verb, sub in verbs[0].choices.items()]
    else:
        parts += [_synopsis(f"drover {name}", parser), _arguments(parser)]
    parts.append(_examples(name))
    return "\n\n".join(part for part in parts if part)


def _verb(
    name: str,
    verb: str,
    parser: argparse.ArgumentParser,
    verbs: "argparse._SubParsersAction[argparse.ArgumentParser]",
) -> str:
    said = next(each.help or "" for each in verbs._choices_actions if each.dest == verb)
    parts = (
        f"### {name} {verb}",
        said,
        _synopsis(f"drover {name} {verb}", parser),
        _arguments(parser),
    )
    return "\n\n".join(part for part in parts if part)


def _synopsis(prefix: str, parser: argparse.ArgumentParser) -> str:
    words = " ".join(_usage(each) for each in actions(parser))
    return f"```text\n{prefix} {words}".rstrip() + "\n```"


def _usage(action: argparse.Action) -> str:
    if action.option_strings:
        value = "" if action.nargs == 0 else f" {_value(action)}"
        shown = f"{action.option_strings[-1]}{value}"
        return shown if action.required else f"[{shown}]"
    value = _value(action)
    return {"?": f"[{value}]", "*": f"[{value} ...]", "+": f"{value} ..."}.get(
        str(action.nargs), value
    )


def _value(action: argparse.Action) -> str:
    if isinstance(action.metavar, str):
        return action.metavar
    if action.choices:
        return "{" + ",".join(map(str, action.choices)) + "}"
    return action.dest.upper()


def _arguments(parser: argparse.ArgumentParser) -> str:
    rows = [(_names(each), _help(each)) for each in actions(parser)]
    return table(("argument", "meaning"), rows) if rows else ""


def _names(action: argparse.Action) -> str:
    if not action.option_strings:
        return code(_value(action))
    value = "" if action.nargs == 0 else f" {_value(action)}"
    return ", ".join(code(f"{option}{value}") for option in action.option_strings)


def _help(action: argparse.Action) -> str:
    said = action.help or ""
    if action.choices and isinstance(action.metavar, str):
        said += f" One of {', '.join(code(choice) for choice in action.choices)}."
    return said


def _examples(name: str) -> str:
    rows = [(code(f"drover {line}"), said) for line, said in getattr(command(name), "examples", ())]
    return table(("example", "what it does"), rows) if rows else ""
