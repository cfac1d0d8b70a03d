"""Every command and verb has an example below its help, prints JSON, and takes what it shows."""

import shlex

import pytest

from agents_app.cli.command import DroverCommand
from agents_app.cli.completion import loaded, own_commands
from agents_app.cli.examples import parsers_of, verbs_of

# A server, a script, and a command that prints only JSON.
WITHOUT_JSON = {"up", "completion", "audit"}
LEAVES = [
    (path, parser)
    for name in own_commands()
    for path, parser in parsers_of(loaded(name).create_parser("manage.py", name), name)
    if not verbs_of(parser)
]
EXAMPLES = [
    text
    for name in own_commands()
    if isinstance(command := loaded(name), DroverCommand)
    for text, _ in command.examples
]


@pytest.mark.parametrize(("path", "parser"), LEAVES, ids=[path for path, _ in LEAVES])
def test_each_has_an_example_and_json(path, parser):
    if path != "up":
        assert f"examples:\n  manage.py {path}" in parser.format_help()
    assert ("--json" in parser.format_help()) == (path not in WITHOUT_JSON)


@pytest.mark.parametrize("example", EXAMPLES)
def test_each_example_is_accepted(example: str):
    name, *arguments = shlex.split(example)
    assert loaded(name).create_parser("manage.py", name).parse_args(arguments)


def test_an_example_stands_only_where_it_belongs():
    texts = {path: parser.format_help() for path, parser in LEAVES}
    assert "schedule list --state" in texts["schedule list"]
    assert "schedule create" not in texts["schedule list"].partition("examples:")[2]
