"""contributing/packages.md from the order of the packages and what each says of itself."""

import ast

from agents_app.conf import ROOT
from tests.codebase.test_imports import EDGES, ORDER, PURE
from tests.docs.generate.markdown import code, page, table

_INTRODUCTION = """
A package imports only packages above it in these tables, and only the names that their
`__init__.py` exports. An edge never imports another edge. `tests/codebase/test_imports.py` checks
this.
"""
_LAYERS = (
    ("Pure", "Values and functions of their arguments: no tables, no Django.", PURE),
    (
        "Rows and features",
        "Tables and the rules about them: no HTTP.",
        tuple(each for each in ORDER if each not in {*PURE, *EDGES, "scheduler_project"}),
    ),
    ("Edges", "Where people, programs and Celery come in: no rules of their own.", EDGES),
    ("Wiring", "Settings, Celery, beat, the worker's steps, URLs.", ("scheduler_project",)),
)


def render() -> str:
    parts = [
        f"## {title}\n\n{about}\n\n{table(('package', 'contents'), _rows(packages))}"
        for title, about, packages in _LAYERS
    ]
    source = "the order in tests/codebase/test_imports.py"
    return page("Map of the packages", source, _INTRODUCTION, *parts)


def _rows(packages: tuple[str, ...]) -> list[tuple[str, str]]:
    return [(code(_path(name)), " ".join(_docstring(name).split())) for name in packages]


def _path(name: str) -> str:
    path = name.replace(".", "/")
    return f"{path}/" if (ROOT / path).is_dir() else f"{path}.py"


def _docstring(name: str) -> str:
    path = ROOT / name.replace(".", "/")
    file = path / "__init__.py" if path.is_dir() else path.with_suffix(".py")
    return ast.get_docstring(ast.parse(file.read_text())) or ""
