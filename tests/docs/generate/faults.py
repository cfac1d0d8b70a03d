"""The table of faults in concepts/reliability.md, with the tests that are marked with each."""

import ast
import tomllib
from collections import defaultdict
from functools import cache
from pathlib import Path

from tests.codebase.source import functions, modules
from tests.docs.generate.markdown import DOCS, table

BEGIN, END = "<!-- generated: faults -->", "<!-- end -->"
PAGE = DOCS / "concepts" / "reliability.md"
NOT_COVERED = "not covered yet"


def faults() -> dict[str, dict[str, str]]:
    return tomllib.loads(Path(__file__).with_name("faults.toml").read_text())


@cache
def marked_tests() -> dict[str, list[tuple[str, str]]]:
    """(file, function) of each test that is marked with a fault, by the fault's id."""
    found: dict[str, list[tuple[str, str]]] = defaultdict(list)
    for module in modules("tests"):
        for function in functions(module):
            for identity in _marks(function):
                place = Path(*module.name.split(".")).with_suffix(".py").as_posix()
                found[identity].append((place, function.name))
    return dict(found)


def _marks(function: ast.FunctionDef | ast.AsyncFunctionDef) -> list[str]:
    return [
        str(argument.value)
        for mark in function.decorator_list
        if isinstance(mark, ast.Call) and ast.unparse(mark.func) == "pytest.mark.fault"
        for argument in mark.args
        if isinstance(argument, ast.Constant)
    ]


def render() -> str:
    """The whole page, with the table made anew."""
    before, _, rest = PAGE.read_text().partition(BEGIN)
    _, _, after = rest.partition(END)
    marked = marked_tests()
    rows = [
        (
            identity,
            one["fault"],
            one["observed"],
            one.get("databases", ""),
            _proof(marked.get(identity, [])),
        )
        for identity, one in faults().items()
    ]
    made = table(("id", "fault", "what must be observed", "databases", "test"), rows)
    return f"{before}{BEGIN}\n\n{made}\n\n{END}{after}"


def _proof(tests: list[tuple[str, str]]) -> str:
    said = [f"{_sentence(name)} (`{place}`)" for place, name in sorted(tests)]
    return "<br>".join(said) or NOT_COVERED


def _sentence(name: str) -> str:
    return name.removeprefix("test_").replace("_", " ")
