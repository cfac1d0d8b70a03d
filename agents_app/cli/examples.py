"""Examples in the help of a command and of its subcommands."""

import argparse
from collections.abc import Iterator, Sequence

from django.core.management.base import CommandParser, DjangoHelpFormatter

Examples = Sequence[tuple[str, str]]


class HelpWithExamples(DjangoHelpFormatter, argparse.RawDescriptionHelpFormatter):
    """Keeps the line breaks of the examples."""


def add_examples(parser: CommandParser, command: str, examples: Examples) -> None:
    """Adds to each parser the examples that start with its words.

    The examples have the name of the module; `command` is the name that the user wrote."""
    module = command.replace("-", "_")
    named = [(text.replace(module, command, 1), why) for text, why in examples]
    for path, subparser in parsers_of(parser, command):
        own = [(text, why) for text, why in named if f"{text} ".startswith(f"{path} ")]
        if own:
            subparser.epilog = _epilog(own, parser.prog.partition(" ")[0])
            subparser.formatter_class = HelpWithExamples


def parsers_of(parser: CommandParser, path: str) -> Iterator[tuple[str, CommandParser]]:
    """The parsers of a command and of its subcommands, each with its words."""
    yield path, parser
    for name, verb in verbs_of(parser).items():
        yield f"{path} {name}", verb


def verbs_of(parser: CommandParser) -> dict[str, CommandParser]:
    for action in parser._actions:
        if isinstance(action, argparse._SubParsersAction):
            return dict(action.choices)
    return {}


def _epilog(examples: Examples, program: str) -> str:
    lines = [f"  {program} {text}\n      {why}" for text, why in examples]
    return "\n".join(["examples:", *lines])
