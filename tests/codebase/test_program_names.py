"""Messages name the program that users have: `drover`, or `manage.py` in a checkout."""

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

from agents_app.conf import ROOT
from scheduler_project import command_table as table
from tests.codebase.source import PACKAGES, Module, modules, tracked_files

MANAGE = "manage.py"
# The constants of agents_app.conf that stand for the program in a message.
CONSTANTS = {"PROGRAM", "TYPED_PROGRAM"}
# Modules and files with the name of the file in a checkout, each with the reason.
ALLOWED = {
    "agents_app/names.py": "decides by this file whether it is in a checkout",
    "agents_app/conf.py": "the same, and compares the name of the program",
    "scheduler_project/project_directory.py": "the same, before the settings can be read",
    "agents_app/management/commands/completion.py": "its path, for the script of a checkout",
    "agents_app/stack/service_unit.py": "its path, for the unit of a checkout",
    "agents_app/cli/completion.py": "a parser whose name is not shown",
    "agents_app/cli/completion.bash": "completes both programs",
    "agents_app/cli/completion.zsh": "completes both programs",
}


def literals(module: Module) -> Iterator[ast.Constant]:
    """The strings of a module without its docstrings."""
    bodies = (getattr(node, "body", None) for node in ast.walk(module.tree))
    first = [body[0] for body in bodies if isinstance(body, list) and body]
    docstrings = {id(node.value) for node in first if isinstance(node, ast.Expr)}
    for node in ast.walk(module.tree):
        is_text = isinstance(node, ast.Constant) and isinstance(node.value, str)
        if is_text and id(node) not in docstrings:
            yield node


def fixed_names(module: Module) -> list[str]:
    return [module.at(node.lineno) for node in literals(module) if MANAGE in str(node.value)]


def wrong_commands(module: Module) -> list[str]:
    """Messages `{PROGRAM} WORD` whose word is no command of `drover`."""
    found = []
    for text in (node for node in ast.walk(module.tree) if isinstance(node, ast.JoinedStr)):
        for before, after in zip(text.values, text.values[1:], strict=False):
            if _is_program(before) and isinstance(after, ast.Constant):
                word = str(after.value).strip(" `").split(" ")[0].rstrip(",.:;)`")
                if word and not ("_" not in word and table.is_command(word)):
                    found.append(f"{module.at(text.lineno)}: {word}")
    return found


def _is_program(part: ast.expr) -> bool:
    value = part.value if isinstance(part, ast.FormattedValue) else None
    return isinstance(value, ast.Name) and value.id in CONSTANTS


def _name(path: Path) -> str:
    return str(path.relative_to(ROOT))


def test_no_message_names_the_program_of_a_checkout_only():
    found = {_name(each.path) for each in modules() if fixed_names(each)}
    others = (
        path
        for path in tracked_files()
        if path.relative_to(ROOT).parts[0] in PACKAGES and path.suffix != ".py"
    )
    found |= {_name(path) for path in others if MANAGE.encode() in path.read_bytes()}
    assert found == ALLOWED.keys()


def test_each_command_in_a_message_is_one_of_drover():
    """Others are written with `command_line()`, which knows how `drover` spells them."""
    assert [wrong for each in modules() for wrong in wrong_commands(each)] == []


@pytest.mark.parametrize("word", ["login_link", "migrate", "sata"])
def test_a_command_that_drover_does_not_have_is_found(tmp_path: Path, monkeypatch, word: str):
    from tests.codebase import source

    monkeypatch.setattr(source, "ROOT", tmp_path)
    path = tmp_path / "messages.py"
    path.write_text(f'"""manage.py is allowed here."""\nraise E(f"(run {{PROGRAM}} {word})")\n')
    assert wrong_commands(Module(path)) == [f"messages.py:2: {word}"]
    assert fixed_names(Module(path)) == []
    path.write_text('"""Text."""\n\n\ndef f():\n    return "use manage.py stat"\n')
    assert fixed_names(Module(path)) == ["messages.py:5"]
