"""The source as data: its files, their syntax trees, and who imports whom."""

import ast
import subprocess
from dataclasses import dataclass
from functools import cache, cached_property
from pathlib import Path

from agents_app.conf import ROOT

PACKAGES = ("agents_app", "gateway_app", "scheduler_project")


@dataclass(frozen=True)
class Module:
    path: Path

    @cached_property
    def name(self) -> str:
        parts = self.path.relative_to(ROOT).with_suffix("").parts
        return ".".join(part for part in parts if part != "__init__")

    @cached_property
    def text(self) -> str:
        return self.path.read_text()

    @cached_property
    def tree(self) -> ast.Module:
        return ast.parse(self.text)

    @cached_property
    def imports(self) -> list[tuple[str, int]]:
        """Every module that is imported anywhere in it, also inside functions, with the line."""
        found: list[tuple[str, int]] = []
        for node in ast.walk(self.tree):
            if isinstance(node, ast.Import):
                found += [(alias.name, node.lineno) for alias in node.names]
            elif isinstance(node, ast.ImportFrom) and node.module:
                found += [(_source_of(node.module, a.name), node.lineno) for a in node.names]
        return found

    def at(self, line: int) -> str:
        """As an editor understands it."""
        return f"{self.path.relative_to(ROOT)}:{line}"


def _source_of(package: str, name: str) -> str:
    """`from package import module` imports the module; anything else, the package."""
    inside = ROOT / Path(*package.split(".")) / name
    return f"{package}.{name}" if inside.is_dir() or inside.with_suffix(".py").exists() else package


@cache
def tracked_files() -> tuple[Path, ...]:
    """Everything that is or would be in the repository."""
    listing = ["git", "ls-files", "--cached", "--others", "--exclude-standard", "-z"]
    done = subprocess.run(listing, cwd=ROOT, capture_output=True, check=False)
    if done.returncode == 0:
        names = [ROOT / name for name in done.stdout.decode().split("\0") if name]
        return tuple(path for path in names if path.is_file())
    # Not a checkout: an unpacked archive has the same files, and maybe an environment beside them.
    hidden = (".venv", ".git", "var")
    found = (path for path in ROOT.rglob("*") if path.is_file())
    return tuple(path for path in found if path.relative_to(ROOT).parts[0] not in hidden)


@cache
def _module(path: Path) -> Module:
    """One for all who ask: to parse a thousand files takes seconds."""
    return Module(path)


@cache
def modules(*roots: str) -> tuple[Module, ...]:
    wanted = roots or PACKAGES
    paths = [path for path in tracked_files() if path.suffix == ".py"]
    return tuple(
        _module(path)
        for path in sorted(paths)
        if path.relative_to(ROOT).parts[0] in wanted and "migrations" not in path.parts
    )


@cache
def functions(module: Module) -> tuple[ast.FunctionDef | ast.AsyncFunctionDef, ...]:
    kinds = ast.FunctionDef | ast.AsyncFunctionDef
    return tuple(node for node in ast.walk(module.tree) if isinstance(node, kinds))


@cache
def calls(module: Module) -> tuple[ast.Call, ...]:
    return tuple(node for node in ast.walk(module.tree) if isinstance(node, ast.Call))
