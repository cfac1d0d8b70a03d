"""The structure of a checkout of Drover as data: its files, branches, names, lengths, imports.

A checkout is read with git and ast and its code is not imported, so that it can be of any version.
"""

import ast
import subprocess
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

PACKAGES = ("agents_app", "gateway_app", "scheduler_project")
PRODUCT = (*PACKAGES, "manage.py")
LONGEST_FUNCTION = 40
# What tells the two databases apart: a question with such a name, or Django's name of the engine.
ENGINE_QUESTIONS = {
    f"{verb}_{engine}"
    for verb in ("on", "is", "uses", "using")
    for engine in ("sqlite", "postgres", "postgresql")
}
ENGINE_NAMES = {"sqlite", "postgres", "postgresql"}
# The vendor is counted wherever it is read; the scheme of DATABASE_URL is a setting.
COUNTED_OTHERWISE = {"vendor", "scheme"}
# Django finds a management command by this name; the file says which one it is.
NAMED_BY_DJANGO = {"Command"}
Function = ast.FunctionDef | ast.AsyncFunctionDef


@dataclass(frozen=True)
class SourceFile:
    """One Python file of a checkout."""

    path: str
    text: str

    @cached_property
    def tree(self) -> ast.Module:
        return ast.parse(self.text, self.path)

    @cached_property
    def module(self) -> str:
        parts = self.path.removesuffix(".py").split("/")
        return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)

    @property
    def expressions(self) -> list[ast.expr]:
        return [node for node in ast.walk(self.tree) if isinstance(node, ast.expr)]

    @cached_property
    def imports(self) -> "list[Import]":
        return list(imports_below(self.tree))

    @property
    def lines(self) -> int:
        return len(self.text.splitlines())

    def at(self, node: ast.stmt | ast.expr, what: str = "") -> str:
        return f"{self.path}:{node.lineno}" + (f" {what}" if what else "")


@dataclass(frozen=True)
class Checkout:
    """The Python files that are, or would be, in the repository; migrations are left out."""

    root: Path

    @cached_property
    def files(self) -> list[SourceFile]:
        listing = ["git", "ls-files", "--cached", "--others", "--exclude-standard", "-z", "*.py"]
        done = subprocess.run(listing, cwd=self.root, capture_output=True, check=True)
        paths = sorted({name for name in done.stdout.decode().split("\0") if name})
        return [
            SourceFile(path, (self.root / path).read_text())
            for path in paths
            if "migrations" not in path.split("/") and (self.root / path).is_file()
        ]

    @cached_property
    def product(self) -> list[SourceFile]:
        return [file for file in self.files if file.path.split("/")[0] in PRODUCT]

    @cached_property
    def tests(self) -> list[SourceFile]:
        return [file for file in self.files if file.path.split("/")[0] == "tests"]

    def in_root_of(self, package: str) -> list[str]:
        """The modules that lie directly in the package."""
        return [
            file.path
            for file in self.product
            if file.path.rpartition("/")[0] == package and not file.path.endswith("__init__.py")
        ]


# --- database branches ----------------------------------------------------------------------


def database_branches(checkout: Checkout) -> list[str]:
    """Each place outside agents_app/database that asks which database is in use."""
    return [
        file.at(node)
        for file in checkout.product
        if not file.path.startswith("agents_app/database/")
        for node in sorted(file.expressions, key=lambda node: node.lineno)
        if _asks_for_the_engine(node)
    ]


def _asks_for_the_engine(node: ast.expr) -> bool:
    if isinstance(node, ast.Attribute):
        return node.attr == "vendor"
    if isinstance(node, ast.Compare):
        return _compares_an_engine_name([node.left, *node.comparators])
    if not isinstance(node, ast.Call):
        return False
    called = _last_name(node.func)
    return called in ENGINE_QUESTIONS or (called == "isinstance" and _names_an_engine_class(node))


def _compares_an_engine_name(sides: list[ast.expr]) -> bool:
    """As in `engine.name == "sqlite"`."""
    attributes = {side.attr for side in sides if isinstance(side, ast.Attribute)}
    constants = {side.value for side in sides if isinstance(side, ast.Constant)}
    return bool(ENGINE_NAMES & constants and attributes - COUNTED_OTHERWISE)


def _names_an_engine_class(call: ast.Call) -> bool:
    names = [(_last_name(node) or "").lower() for node in ast.walk(call.args[1])]
    return any(engine in name for name in names for engine in ENGINE_NAMES)


def _last_name(node: ast.AST) -> str | None:
    if isinstance(node, ast.Attribute):
        return node.attr
    return node.id if isinstance(node, ast.Name) else None


# --- classes and functions ------------------------------------------------------------------


def repeated_classes(checkout: Checkout) -> dict[str, list[str]]:
    """Names of more than one class of the product; a class inside a class is named by the outer."""
    places: dict[str, list[str]] = defaultdict(list)
    for file in checkout.product:
        for node in file.tree.body:
            if isinstance(node, ast.ClassDef) and node.name not in NAMED_BY_DJANGO:
                places[node.name].append(file.at(node))
    return {name: found for name, found in sorted(places.items()) if len(found) > 1}


def long_functions(files: Sequence[SourceFile]) -> list[str]:
    return [
        file.at(node, f"{node.name} has {lines} lines")
        for file in files
        for node in ast.walk(file.tree)
        if isinstance(node, Function)
        and (lines := (node.end_lineno or 0) - node.lineno + 1) > LONGEST_FUNCTION
    ]


# --- imports --------------------------------------------------------------------------------


@dataclass(frozen=True)
class Import:
    """One import statement, and the modules that it names."""

    node: ast.Import | ast.ImportFrom
    in_function: bool
    for_types: bool

    def targets(self, importer: SourceFile, modules: set[str]) -> set[str]:
        """`from package import module` imports the module; anything else, the package."""
        if isinstance(self.node, ast.Import):
            return {alias.name for alias in self.node.names} & modules
        package = self._package(importer)
        named = {alias.name: f"{package}.{alias.name}" for alias in self.node.names}
        return {full if full in modules else package for full in named.values()} & modules

    def _package(self, importer: SourceFile) -> str:
        assert isinstance(self.node, ast.ImportFrom)
        if not self.node.level:
            return self.node.module or ""
        here = importer.path.removesuffix(".py").split("/")
        above = here[: len(here) - self.node.level]
        return ".".join([*above, *filter(None, [self.node.module])])


def imports_below(
    node: ast.AST, in_function: bool = False, for_types: bool = False
) -> Iterator[Import]:
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.expr):
            continue
        if isinstance(child, ast.Import | ast.ImportFrom):
            yield Import(child, in_function, for_types)
            continue
        typed = isinstance(child, ast.If) and _last_name(child.test) == "TYPE_CHECKING"
        yield from imports_below(
            child, in_function or isinstance(child, Function), for_types or typed
        )


def imports_in_functions(checkout: Checkout, *, only_own: bool = False) -> list[str]:
    modules = {file.module for file in checkout.product}
    return [
        file.at(found.node, ast.unparse(found.node))
        for file in checkout.product
        for found in file.imports
        if found.in_function and (not only_own or found.targets(file, modules))
    ]


def import_graph(checkout: Checkout) -> dict[str, set[str]]:
    """By module the modules it imports when it runs, at the top or inside a function."""
    modules = {file.module for file in checkout.product}
    graph: dict[str, set[str]] = {}
    for file in checkout.product:
        found = [one for one in file.imports if not one.for_types]
        targets = set().union(*(one.targets(file, modules) for one in found))
        graph[file.module] = targets - {file.module}
    return graph


def import_cycles(graph: dict[str, set[str]]) -> list[list[str]]:
    """Groups of modules each of which reaches all others of its group; the largest first."""
    reached = {module: _reachable(graph, module) for module in graph}
    groups = {
        tuple(sorted(other for other in reached[module] if module in reached[other]))
        for module in graph
        if module in reached[module]
    }
    return sorted(map(list, groups), key=lambda group: (-len(group), group))


def _reachable(graph: dict[str, set[str]], start: str) -> set[str]:
    found: set[str] = set()
    waiting = [start]
    while waiting:
        new = graph[waiting.pop()] - found
        found |= new
        waiting += new
    return found
