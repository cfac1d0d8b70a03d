"""Which package may import which, and that packages are imported through what they export."""

import ast

import pytest

from agents_app.conf import ROOT
from tests.codebase.source import PACKAGES, Module, modules

# From the bottom to the top: a package imports packages above it in this list, never below.
ORDER = (
    # pure: values and functions of their arguments; no tables, no Django
    "agents_app.errors",
    "agents_app.names",
    "agents_app.conf",
    "agents_app.clock",
    "agents_app.text",
    "agents_app.triggers",
    "agents_app.harness",
    "agents_app.installation",
    "agents_app.runners",
    "agents_app.redaction",
    "agents_app.webhooks.providers",
    "agents_app.rules.language",
    "agents_app.work_sources.kinds",
    "agents_app.console",
    # rows
    "agents_app.database",
    "agents_app.models",
    "agents_app.events",
    # features
    "agents_app.runs",
    "agents_app.schedules",
    "agents_app.secrets",
    "agents_app.notifications",
    "agents_app.webhooks",
    "agents_app.skills",
    "agents_app.formats",
    "agents_app.scaffold",
    "agents_app.accounts",
    "agents_app.budgets",
    "agents_app.output",
    "agents_app.signals",
    "agents_app.launch",
    "agents_app.worker",
    "agents_app.work_sources",
    "agents_app.rules",
    "agents_app.project",
    "agents_app.reports",
    "agents_app.maintenance",
    "agents_app.backups",
    # edges: where people, programs and Celery come in
    "agents_app.stack",
    "agents_app.checks",
    "agents_app.apps",
    "agents_app.tasks",
    "agents_app.scheduler",
    "agents_app.cli",
    "agents_app.management",
    "agents_app.remote",
    "agents_app.admin",
    "gateway_app",
    # wiring
    "scheduler_project",
)
PURE = ORDER[: ORDER.index("agents_app.database")]
EDGES = ORDER[ORDER.index("agents_app.stack") : ORDER.index("scheduler_project")]
# Pure modules of packages that also have tables.
PURE_MODULES = frozenset(
    f"agents_app.{name}"
    for name in (
        "budgets.caps",
        "events.trace",
        "formats.action_llama",
        "formats.herdctl",
        "formats",
        "launch.hooks",
        "launch.injection",
        "launch.prompt",
        "launch.workdir",
        "notifications.outgoing",
        "notifications.payloads",
        "output.ansi",
        "output.buffer",
        "output.lines",
        "output.numbering",
        "output.watchers",
        "reports.statistics",
        "runs.job",
        "secrets.references",
        "secrets.sealing",
        "secrets.types",
        "signals.fields",
        "signals.lock_uris",
        "skills",
        "work_sources.texts",
    )
)
# An edge that is part of another one, and the two processes that `up` starts.
EDGE_PAIRS = {
    ("agents_app.management", "agents_app.cli"),  # what commands share
    ("agents_app.management", "agents_app.stack"),  # `up`
    ("agents_app.management", "agents_app.checks"),  # `up` checks the settings
    ("agents_app.apps", "agents_app.checks"),
    ("agents_app.scheduler", "agents_app.stack"),  # its database and its worker process
}
ENTRY_POINTS = {
    ("agents_app.stack.serve", "scheduler_project.celery"),  # `python -m agents_app.stack.serve`
    ("gateway_app.serve", "scheduler_project.asgi"),
}
CELERY = {
    "agents_app.stack.serve",
    "agents_app.stack.monitor",  # the application that Flower watches through
    "agents_app.tasks",
    "scheduler_project.beat",
    "scheduler_project.celery",
    "scheduler_project.worker",
}


def package_of(name: str) -> str | None:
    """The entry of ORDER that a module belongs to; the longest prefix decides."""
    fits = [entry for entry in ORDER if name == entry or name.startswith(f"{entry}.")]
    return max(fits, key=len, default=None)


def _ours(module: Module) -> list[tuple[str, int]]:
    return [(name, line) for name, line in module.imports if name.split(".")[0] in PACKAGES]


@pytest.mark.parametrize("module", modules(), ids=lambda module: module.name)
def test_a_package_imports_only_packages_above_it_in_the_list(module: Module):
    own = package_of(module.name)
    wrong = [
        f"{module.at(line)}: {module.name} imports {imported}"
        for imported, line in _ours(module)
        if own is not None
        and (other := package_of(imported)) is not None
        and ORDER.index(other) > ORDER.index(own)
        and (module.name, imported) not in ENTRY_POINTS
    ]
    assert wrong == []


def test_edges_never_import_edges():
    wrong = [
        f"{module.at(line)}: {module.name} imports {imported}"
        for module in modules()
        if (own := package_of(module.name)) in EDGES
        for imported, line in _ours(module)
        if (other := package_of(imported)) in EDGES
        and own != other
        and (own, other) not in EDGE_PAIRS
    ]
    assert wrong == []


def test_every_module_belongs_to_a_package_of_the_list():
    without = [module.name for module in modules() if package_of(module.name) is None]
    # Run as a script by the commands of a run; it may use the standard library only.
    assert without == ["agents_app", "agents_app.agent_bin.http_post"]


def test_every_entry_of_the_list_exists():
    names = {module.name for module in modules()}
    assert [entry for entry in ORDER if entry not in names] == []


# --- what a package exports -----------------------------------------------------------------


def exported_names(package: str) -> frozenset[str] | None:
    """`__all__` of the package; None for a module, and for a package that exports nothing."""
    init = ROOT / package.replace(".", "/") / "__init__.py"
    if not init.exists():
        return None
    for node in ast.parse(init.read_text()).body:
        if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "__all__":
            return frozenset(ast.literal_eval(node.value))
    return frozenset()


def _imports_from(module: Module) -> list[tuple[str, str, int]]:
    """(source, name, line) of each `from source import name`."""
    return [
        (node.module, alias.name, node.lineno)
        for node in ast.walk(module.tree)
        if isinstance(node, ast.ImportFrom) and node.module
        for alias in node.names
    ]


# Entry points are run by name, and Django finds these by their path.
BY_PATH = ("agents_app.management", "agents_app.admin", "gateway_app.urls")


def _is_public(source: str, name: str) -> bool:
    package = package_of(source)
    assert package is not None
    nested = [package, *_nested_packages(package)]
    return any(source == each and name in (exported_names(each) or ()) for each in nested)


def _is_package(name: str) -> bool:
    return (ROOT / name.replace(".", "/")).is_dir()


def _nested_packages(package: str) -> list[str]:
    root = ROOT / package.replace(".", "/")
    inits = root.rglob("__init__.py") if root.is_dir() else ()
    return [".".join(init.parent.relative_to(ROOT).parts) for init in inits]


def test_packages_are_imported_through_what_they_export():
    wrong = [
        f"{module.at(line)}: {module.name} imports {name} from {source}"
        for module in modules()
        for source, name, line in _imports_from(module)
        if source.split(".")[0] in PACKAGES
        and source not in {*PACKAGES, "agents_app.rules", "agents_app.webhooks"}
        and source.count(".") + _is_package(source) > 1
        and not source.startswith(("scheduler_project", *BY_PATH))
        and package_of(source) != package_of(module.name)
        and exported_names(package_of(source) or "") is not None
        and not _is_public(source, name)
    ]
    assert wrong == []


def test_every_package_says_what_belongs_in_it_and_what_does_not():
    silent = [
        module.name
        for module in modules("agents_app", "gateway_app")
        if module.path.name == "__init__.py"
        and module.name not in {"agents_app.management", "agents_app.management.commands"}
        and len((ast.get_docstring(module.tree) or "").splitlines()) < 3
    ]
    assert silent == []


def test_no_import_hides_in_a_function_to_avoid_a_cycle():
    """Imports of Drover's own modules stand at the top, but for parts that most processes skip."""
    late = [
        f"{module.at(node.lineno)}"
        for module in modules()
        for function in ast.walk(module.tree)
        if isinstance(function, ast.FunctionDef | ast.AsyncFunctionDef)
        for node in ast.walk(function)
        if isinstance(node, ast.Import | ast.ImportFrom)
        and (getattr(node, "module", None) or node.names[0].name).split(".")[0] in PACKAGES
        and module.name not in LOADS_LATE
    ]
    assert late == []


LOADS_LATE = {
    "agents_app.apps": "Django's own rule: checks are registered when the applications are ready",
    "agents_app.console.screen": "rich, for terminals only",
    "agents_app.stack.__main__": "Django, for the moment in which the supervisor stops",
    "scheduler_project.admin_site": "settings import this module; the pages need settings",
    "scheduler_project.command": "the client of HTTP, for a remote Drover only",
    "scheduler_project.celery": "only workers need what a worker needs",
    "scheduler_project.pages": "Django's own rule: pages are found when applications are ready",
}


# --- what a kind of package may know ----------------------------------------------------------


def test_only_the_edge_to_celery_imports_celery():
    wrong = [
        module.at(line)
        for module in modules()
        for imported, line in module.imports
        if imported.split(".")[0] in {"celery", "kombu"} and module.name not in CELERY
    ]
    assert wrong == []


def test_pure_modules_do_not_import_django():
    pure = [
        module
        for module in modules("agents_app")
        if package_of(module.name) in PURE
        or any(module.name == name or module.name.startswith(f"{name}.") for name in PURE_MODULES)
    ]
    assert len(pure) > 90
    wrong = [
        module.at(line)
        for module in pure
        for imported, line in module.imports
        if imported.split(".")[0] in {"django", "celery", "redis", "psycopg"}
        or package_of(imported) in {"agents_app.models", "agents_app.database"}
    ]
    assert wrong == []


def test_the_gateway_owns_no_tables():
    owners = [
        module.name
        for module in modules("gateway_app", "scheduler_project")
        if "models.Model" in module.text
    ]
    assert owners == []


def test_the_domain_knows_nothing_of_http():
    wrong = [
        module.at(line)
        for module in modules("agents_app")
        if package_of(module.name) not in EDGES
        for imported, line in module.imports
        if imported.startswith(("django.http", "django.views", "django.shortcuts", "django.urls"))
    ]
    assert wrong == []


@pytest.mark.parametrize(("root", "most"), [("agents_app", 8), ("gateway_app", 5)])
def test_few_modules_lie_in_the_root_of_an_application(root, most):
    flat = [path.name for path in (ROOT / root).glob("*.py") if path.name != "__init__.py"]
    assert len(flat) <= most, flat
