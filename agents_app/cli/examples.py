"""Examples below the help of a command and of each of its verbs, printed as they are typed."""

import argparse
from collections.abc import Iterator, Sequence

from django.core.management.base import CommandParser, DjangoHelpFormatter

Examples = Sequence[tuple[str, str]]


class HelpWithExamples(DjangoHelpFormatter, argparse.RawDescriptionHelpFormatter):
    """Keeps the lines of the examples apart."""


def add_examples(parser: CommandParser, command: str, examples: Examples) -> None:
    """Each parser gets those of its own: `schedule list` none of `schedule create`."""
    for path, one in parsers_of(parser, command):
        fitting = [(text, why) for text, why in examples if f"{text} ".startswith(f"{path} ")]
        if fitting:
            one.epilog = _epilog(fitting)
            one.formatter_class = HelpWithExamples


def parsers_of(parser: CommandParser, path: str) -> Iterator[tuple[str, CommandParser]]:
    """The parser of a command and those of its verbs, each with the words that lead to it."""
    yield path, parser
    for name, verb in verbs_of(parser).items():
        yield f"{path} {name}", verb


def verbs_of(parser: CommandParser) -> dict[str, CommandParser]:
    for action in parser._actions:
        if isinstance(action, argparse._SubParsersAction):
            return dict(action.choices)
    return {}


def _epilog(examples: Examples) -> str:
    lines = [f"  manage.py {text}\n      {why}" for text, why in examples]
    return "\n".join(["examples:", *lines])
