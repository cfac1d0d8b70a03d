"""Small files, short functions, names that say something, and a sentence at the top of each."""

import ast

import pytest

from agents_app.conf import ROOT
from tests.codebase.source import Module, functions, modules, tracked_files

LONGEST_FILE = 400
LONGEST_FUNCTION = 40
SAYS_NOTHING = {"utils", "util", "helpers", "helper", "common", "services", "manager", "managers"}
EVERYWHERE = ("agents_app", "gateway_app", "scheduler_project", "tests")


def test_no_file_is_too_long_to_be_read_at_once():
    long = {
        str(module.path.relative_to(ROOT)): lines
        for module in modules(*EVERYWHERE)
        if (lines := module.text.count("\n")) > LONGEST_FILE
    }
    assert long == {}


def test_no_function_is_too_long_to_be_understood_at_once():
    long = [
        f"{module.at(function.lineno)}: {function.name} has {_lines(function)} lines"
        for module in modules(*EVERYWHERE)
        for function in functions(module)
        if _lines(function) > LONGEST_FUNCTION
    ]
    assert long == []


def _lines(function: ast.FunctionDef | ast.AsyncFunctionDef) -> int:
    return (function.end_lineno or 0) - function.lineno + 1


def test_functions_are_short_as_a_rule():
    lengths = sorted(_lines(f) for module in modules() for f in functions(module))
    assert lengths[len(lengths) // 2] <= 9


def test_no_module_has_a_name_that_fits_anything():
    wrong = [
        path
        for path in tracked_files()
        if SAYS_NOTHING & {path.stem, *path.relative_to(ROOT).parts}
        # A template that replaces one of Unfold has its name.
        and "unfold" not in path.parts
    ]
    assert wrong == []


@pytest.mark.parametrize("root", ["agents_app", "gateway_app", "scheduler_project"])
def test_every_module_says_what_lives_in_it(root):
    silent = [
        module.name
        for module in modules(root)
        if module.tree.body and not ast.get_docstring(module.tree)
    ]
    assert silent == []


def test_every_test_is_named_as_a_sentence():
    """Three words at least; a name such as test_run says nothing when it fails."""
    short = [
        f"{module.at(function.lineno)}: {function.name}"
        for module in modules("tests")
        if module.path.name.startswith("test_")
        for function in functions(module)
        if function.name.startswith("test_") and function.name.count("_") < 3
    ]
    assert short == []


def test_the_length_of_a_file_is_measured(tmp_path, monkeypatch):
    """The checks above can fail."""
    from tests.codebase import source

    monkeypatch.setattr(source, "ROOT", tmp_path)
    path = tmp_path / "long.py"
    path.write_text("def f():\n" + "    pass\n" * 50)
    (function,) = functions(Module(path))
    assert _lines(function) == 51 > LONGEST_FUNCTION
