"""Generated pages are as the code would write them now."""

import ast
import re

import pytest

from tests.codebase.source import modules
from tests.docs.generate import configuration, events
from tests.docs.generate.markdown import DOCS, descriptions
from tests.docs.generate.pages import PAGES

# Drover's processes set them for each other; users do not.
INTERNAL = {
    "DROVER_GUARD_FD",
    "DROVER_HINT_TRANSPORT",
    "DROVER_READY_FILE",
    "DROVER_ROLE",
    "DROVER_UP_STARTED_AT",
}
_VARIABLE = re.compile(r"DROVER_[A-Z_]+")


REMEDY = "run `make docs` and commit the page"
READS_ROWS = "reference/metrics.md"


@pytest.mark.django_db
def test_the_page_of_the_metrics_is_what_the_code_says():
    assert (DOCS / READS_ROWS).read_text() == PAGES[READS_ROWS](), (
        "run `make docs`, commit the page"
    )


@pytest.mark.parametrize("page", sorted(PAGES.keys() - {READS_ROWS}))
def test_a_generated_page_is_what_the_code_says(page: str):
    assert (DOCS / page).read_text() == PAGES[page](), REMEDY


@pytest.mark.parametrize("section", ["journal", "log", "environment", "run_environment"])
def test_nothing_is_described_that_the_code_has_not(section: str):
    constants = {
        node.value
        for module in modules()
        for node in ast.walk(module.tree)
        if isinstance(node, ast.Constant) and isinstance(node.value, str)
    }
    endings = {f"run.{state}" for state in events._endings()}
    from_libraries = {"DOCKER_HOST"}
    gone = descriptions(section).keys() - constants - endings - from_libraries
    assert gone == set()


@pytest.mark.parametrize(
    ("section", "page"),
    [
        *((name, "skill") for name in ("agent", "schedule", "runtime", "budget", "webhook")),
        *((name, "configuration") for name in ("project", "gateway", "local", "source", "notify")),
    ],
)
def test_every_described_field_is_a_field_of_the_page(section: str, page: str):
    text = (DOCS / "reference" / f"{page}.md").read_text()
    missing = [name for name in descriptions(section) if f"| `{name}` |" not in text]
    assert missing == []


def test_every_journal_entry_is_described():
    nouns = {name.partition(".")[0] for name in descriptions("journal")}
    named = {
        node.value
        for module in modules()
        for node in ast.walk(module.tree)
        if isinstance(node, ast.Constant)
        and isinstance(node.value, str)
        and events.EVENT.fullmatch(node.value)
        and node.value.partition(".")[0] in nouns - {"queue", "login"}
    }
    described = descriptions("journal").keys() | descriptions("log").keys()
    files = {name for name in named if name.endswith((".py", ".js", ".css", ".rules"))}
    assert named - described - files - {"run.completed"} == set()


def test_every_variable_that_the_code_names_is_described():
    named = {
        found
        for module in modules()
        for node in ast.walk(module.tree)
        if isinstance(node, ast.Constant) and isinstance(node.value, str)
        for found in [node.value]
        if _VARIABLE.fullmatch(found)
    }
    described = descriptions("environment").keys() | descriptions("run_environment").keys()
    assert named - described - INTERNAL == set()
    assert len(configuration.variables()) > 20
