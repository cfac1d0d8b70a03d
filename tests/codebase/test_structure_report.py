"""The counters of the structure report count, on small made-up checkouts; limits of this one."""

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.codebase import structure, structure_report
from tests.codebase.structure import Checkout
from tests.codebase.structure_report import THIS_CHECKOUT, Count

NewCheckout = Callable[..., Checkout]


@pytest.fixture
def new_checkout(tmp_path: Path) -> NewCheckout:
    """Makes a git checkout; files by path, each with its text."""

    def make(files: dict[str, str], name: str = "checkout") -> Checkout:
        root = tmp_path / name
        for path, text in files.items():
            (root / path).parent.mkdir(parents=True, exist_ok=True)
            (root / path).write_text(text)
        subprocess.run(["git", "init", "--quiet", root], check=True)
        return Checkout(root)

    return make


def shown(checkout: Checkout, label: str) -> str:
    (text,) = [one.text for one in structure_report.counts(checkout) if one.label == label]
    return text


def test_files_and_lines_are_counted_without_migrations_and_ignored_files(new_checkout):
    checkout = new_checkout(
        {
            "manage.py": "1\n2\n",
            "agents_app/tasks.py": "1\n2\n3\n",
            "agents_app/migrations/0001_initial.py": "1\n" * 100,
            "tests/test_tasks.py": "1\n",
            "other/file.py": "1\n" * 50,
            "agents_app/notes.txt": "1\n" * 50,
            "agents_app/made.py": "1\n" * 50,
            ".gitignore": "made.py\n",
        }
    )
    assert shown(checkout, "Python files, product") == "2"
    assert shown(checkout, "lines, product") == "5"
    assert shown(checkout, "Python files, tests") == "1"
    assert shown(checkout, "lines, tests") == "1"


def test_modules_in_a_root_are_those_of_no_package(new_checkout):
    files = ("__init__", "apps", "tasks", "runs/__init__", "runs/slots")
    checkout = new_checkout(
        {f"agents_app/{file}.py": "" for file in files} | {"gateway_app/urls.py": ""}
    )
    assert checkout.in_root_of("agents_app") == ["agents_app/apps.py", "agents_app/tasks.py"]
    assert shown(checkout, "modules in the root of gateway_app") == "1"


@pytest.mark.parametrize(
    "branch",
    [
        "lock = '' if on_sqlite() else ' FOR UPDATE'",
        "if connection.vendor == 'postgresql':\n    pass",
        "print(connection.vendor)",
        "if sql.is_postgres():\n    pass",
        "if engine.name == 'sqlite':\n    pass",
        "if isinstance(engine, SqliteEngine):\n    pass",
        "if isinstance(engine, (Other, postgres.PostgresEngine)):\n    pass",
    ],
)
def test_a_question_for_the_database_is_one_branch(new_checkout, branch):
    checkout = new_checkout({"agents_app/locks.py": f"\n{branch}\n"})
    assert structure.database_branches(checkout) == ["agents_app/locks.py:2"]


@pytest.mark.parametrize(
    "text",
    [
        "from agents_app.database import on_sqlite",
        "def on_sqlite(): ...",
        "if parts.scheme == 'sqlite':\n    pass",
        "name = 'sqlite'",
        "if isinstance(value, str):\n    pass",
    ],
)
def test_what_asks_for_no_database_is_no_branch(new_checkout, text):
    checkout = new_checkout({"agents_app/conf.py": text})
    assert structure.database_branches(checkout) == []


def test_branches_inside_the_database_package_and_in_tests_are_not_counted(new_checkout):
    inside = ("agents_app/database/sql.py", "agents_app/migrations/0001.py", "tests/test_sql.py")
    branch = "on_sqlite()\n"
    checkout = new_checkout(dict.fromkeys(inside, branch) | {"gateway_app/a.py": branch * 2})
    label = "database branches outside agents_app/database"
    assert shown(checkout, label) == "2 in 1 files"


def test_a_class_name_counts_once_however_often_it_is_defined(new_checkout):
    checkout = new_checkout(
        {
            "agents_app/a.py": "class Line: ...\nclass Alone:\n    class Meta: ...\n",
            "agents_app/b.py": "class Line: ...\nclass Other:\n    class Meta: ...\n",
            "gateway_app/c.py": "class Line: ...\n",
            "tests/d.py": "class Alone: ...\n",
        }
    )
    places = ["agents_app/a.py:1", "agents_app/b.py:1", "gateway_app/c.py:1"]
    assert structure.repeated_classes(checkout) == {"Line": places}


def test_the_class_that_django_wants_in_each_command_is_not_counted(new_checkout):
    commands = "agents_app/management/commands"
    checkout = new_checkout({f"{commands}/{name}.py": "class Command: ..." for name in "ab"})
    assert structure.repeated_classes(checkout) == {}


def test_functions_over_forty_lines_are_counted_in_product_and_tests(new_checkout):
    def function(lines: int) -> str:
        return "async def work():\n" + "    pass\n" * (lines - 1)

    checkout = new_checkout(
        {
            "agents_app/a.py": function(40),
            "agents_app/b.py": function(41),
            "tests/c.py": function(99),
        }
    )
    files = [*checkout.product, *checkout.tests]
    assert structure.long_functions(files) == [
        "agents_app/b.py:1 work has 41 lines",
        "tests/c.py:1 work has 99 lines",
    ]


def test_imports_inside_functions_are_counted_and_those_of_own_modules_apart(new_checkout):
    checkout = new_checkout(
        {
            "agents_app/a.py": "import os\n\ndef f():\n    import httpx\n"
            "    if f:\n        from agents_app import b\n",
            "agents_app/b.py": "class C:\n    import os\n",
        }
    )
    own = "agents_app/a.py:6 from agents_app import b"
    assert structure.imports_in_functions(checkout) == [
        "agents_app/a.py:4 import httpx",
        own,
    ]
    assert structure.imports_in_functions(checkout, only_own=True) == [own]


# --- import cycles --------------------------------------------------------------------------


def cycles(checkout: Checkout) -> list[list[str]]:
    return structure.import_cycles(structure.import_graph(checkout))


def test_modules_that_import_each_other_are_a_cycle_also_through_a_function(new_checkout):
    checkout = new_checkout(
        {
            "agents_app/a.py": "from agents_app import b\n",
            "agents_app/b.py": "from agents_app.c import thing\n",
            "agents_app/c.py": "def f():\n    import agents_app.a\n",
            "agents_app/d.py": "from agents_app import a\n",
        }
    )
    assert cycles(checkout) == [["agents_app.a", "agents_app.b", "agents_app.c"]]
    assert shown(checkout, "import cycles") == "1 of 3 modules"


def test_two_cycles_are_told_apart_and_the_larger_is_first(new_checkout):
    imports = {"a": "b", "b": "a", "c": "d", "d": "e", "e": "c"}
    files = {f"agents_app/{name}.py": f"from . import {to}\n" for name, to in imports.items()}
    checkout = new_checkout(files | {"agents_app/f.py": "from . import a, c\n"})
    assert [len(cycle) for cycle in cycles(checkout)] == [3, 2]
    assert shown(checkout, "import cycles") == "2 of 3, 2 modules"


def test_an_import_for_types_alone_closes_no_cycle(new_checkout):
    checkout = new_checkout(
        {
            "agents_app/a.py": "from agents_app import b\n",
            "agents_app/b.py": "if TYPE_CHECKING:\n    from agents_app import a\n",
        }
    )
    assert cycles(checkout) == []
    assert shown(checkout, "import cycles") == "0"


def test_a_cycle_through_the_exports_of_a_package_is_found(new_checkout):
    checkout = new_checkout(
        {
            "agents_app/runs/__init__.py": "from agents_app.runs.slots import fill\n",
            "agents_app/runs/slots.py": "from agents_app.events import write\n",
            "agents_app/events/__init__.py": "from .journal import write\n",
            "agents_app/events/journal.py": "from ..runs import fill\n",
        }
    )
    assert [len(cycle) for cycle in cycles(checkout)] == [4]


# --- the printed report ---------------------------------------------------------------------


def test_two_checkouts_are_the_columns_before_and_after(new_checkout, capsys):
    before = new_checkout({f"agents_app/{name}.py": "" for name in "abc"}, "old")
    after = new_checkout({"agents_app/a.py": ""}, "new")
    assert structure_report.main([str(before.root), str(after.root)]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].split() == ["before", "after"]
    assert "modules in the root of agents_app 3 1" in [" ".join(line.split()) for line in lines]


def test_details_name_the_places_behind_each_number(new_checkout, capsys):
    checkout = new_checkout({"agents_app/a.py": "on_sqlite()\n"})
    structure_report.main([str(checkout.root)])
    assert "agents_app/a.py:1" not in capsys.readouterr().out
    structure_report.main(["--details", str(checkout.root)])
    assert "  agents_app/a.py:1\n" in capsys.readouterr().out


def test_a_directory_without_git_is_refused_with_the_words_of_git(tmp_path, capsys):
    assert structure_report.main([str(tmp_path)]) == 1
    assert "not a git repository" in capsys.readouterr().err


def test_the_report_is_a_command_that_needs_no_settings(new_checkout):
    checkout = new_checkout({"agents_app/a.py": "import missing_library\n"})
    argv = [sys.executable, "-m", "tests.codebase.structure_report", checkout.root]
    done = subprocess.run(
        argv, cwd=THIS_CHECKOUT, env={}, capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.splitlines()[0].split() == ["now"]


# --- limits of this checkout ----------------------------------------------------------------

# The highest number allowed by its label in the report. Lower a limit when the number falls.
LIMITS = {
    "modules in the root of agents_app": 8,
    "modules in the root of gateway_app": 5,
    "database branches outside agents_app/database": 0,
    "class names defined more than once": 0,
    "functions over 40 lines": 0,
    "imports inside functions, of Drover's own modules": 12,
    "import cycles": 0,
}


@pytest.fixture(scope="module")
def counts() -> dict[str, Count]:
    return {one.label: one for one in structure_report.counts(Checkout(THIS_CHECKOUT))}


@pytest.mark.parametrize("label", LIMITS)
def test_the_number_of_this_checkout_is_within_its_limit(counts, label):
    assert counts[label].number <= LIMITS[label], "\n".join(counts[label].places)
