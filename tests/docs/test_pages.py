"""What the pages name exists: files, links, commands, states, reasons, providers, pages."""

import ast
import re
import shlex
import subprocess
from functools import cache
from pathlib import Path

import pytest

from agents_app.conf import ROOT
from agents_app.models import Firing, Run, Schedule, WorkItem
from agents_app.runs.lifecycle import RUN_MOVES, WORK_MOVES
from agents_app.runs.schedule_states import SCHEDULE_MOVES
from agents_app.secrets import CREDENTIAL_TYPES
from agents_app.webhooks.providers import PROVIDERS
from scheduler_project.admin_site import UNFOLD
from scheduler_project.command_table import OF_AGENTS
from tests.codebase.source import modules
from tests.docs.generate import cli
from tests.docs.generate.faults import NOT_COVERED, faults, marked_tests
from tests.docs.pages import inline_code, pages, samples, title

DOCS = ROOT / "docs"
PATHS = DOCS / "concepts" / "paths.md"
_FILE = re.compile(
    r"(?:agents_app|gateway_app|scheduler_project|tests|docs|compose|examples)/[\w./-]*\w/?"
)
_LINK = re.compile(r"\]\(([^)#\s]+)(?:#[^)]*)?\)")
_MOVE = re.compile(r"^\s*(\w+) --> (\w+)$", re.MULTILINE)
_SECTION = re.compile(r"^## ", re.MULTILINE)


@pytest.mark.parametrize("page", pages(), ids=title)
def test_every_file_that_a_page_names_exists(page: Path):
    named = [text for text in inline_code(page) if _FILE.fullmatch(text)]
    assert [text for text in named if not (ROOT / text).exists()] == []


@pytest.mark.parametrize("page", pages(), ids=title)
def test_every_link_of_a_page_leads_to_a_file(page: Path):
    links = [link for link in _LINK.findall(page.read_text()) if "://" not in link]
    assert [link for link in links if not (page.parent / link).exists()] == []


@pytest.mark.parametrize("page", pages(), ids=title)
def test_every_command_that_a_page_mentions_exists(page: Path):
    wrong = []
    for text in inline_code(page):
        words = [word for word in text.removeprefix("python ").split() if "=" not in word]
        program, name = [*words, "", ""][:2]
        if program in {"drover", "manage.py"} and name.islower() and name[0].isalpha():
            wrong += [] if _is_command(words[1:]) else [text]
    assert wrong == []


def _is_command(words: list[str]) -> bool:
    name, *rest = words
    if name == "manage" or name in OF_AGENTS or words == ["bin/pip"]:
        return True
    name = name.replace("-", "_")
    if name not in cli.names():
        return False
    verbs = next((each.choices for each in cli.actions(cli.parser_of(name)) if each.choices), None)
    is_verb = isinstance(verbs, dict) and bool(rest) and rest[0].islower()
    return not is_verb or rest[0] in (verbs or ())


@pytest.mark.parametrize("page", pages(), ids=title)
def test_commands_are_written_with_drover(page: Path):
    """`manage.py` is named where a page explains that it is the same in a checkout."""
    wrong = [each for each in samples("sh") if each.page == page and "manage.py" in each.text]
    inline = [text for text in inline_code(page) if re.search(r"manage\.py [a-z]", text)]
    assert [str(each) for each in wrong] + inline == []


def test_make_has_every_target_that_a_page_names():
    targets = set(re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(), re.MULTILINE))
    used = {
        words[words.index("make") + 1]
        for sample in samples("sh")
        for line in sample.text.splitlines()
        if "make" in (words := shlex.split(line, comments=True) if _is_plain(line) else [])
    }
    assert {"run", "test", "docs"} <= used <= targets


def _is_plain(line: str) -> bool:
    return "make " in line and "'" not in line


def test_every_page_of_the_dashboard_that_is_named_is_in_the_menu():
    groups = UNFOLD["SIDEBAR"]["navigation"]
    menu = {str(item["title"]) for group in groups for item in group["items"]}
    named = {
        (title(page), name)
        for page in pages()
        for name in re.findall(r"\*\*([A-Z][\w ]+)\*\*\s+page", page.read_text())
    }
    assert len(named) > 6
    assert {pair for pair in named if pair[1] not in menu} == set()


# --- the README -------------------------------------------------------------------------------


def test_the_readme_is_short_and_begins_with_the_two_commands():
    lines = (ROOT / "README.md").read_text().splitlines()
    assert len(lines) <= 150
    first_screen = "\n".join(lines[:25])
    for command in ("make run", "make test", "pipx install drover-fleet", "drover init demo --yes"):
        assert command in first_screen


# --- troubleshooting --------------------------------------------------------------------------

SYMPTOMS = DOCS / "operations" / "troubleshooting.md"
_MESSAGE = re.compile(r"^\| (?:\d+ )?`([^`]+)`", re.MULTILINE)
# Words in capitals stand for values; Python and databases have their own messages.
_PLACEHOLDER = re.compile(r"\b[A-Z]{1,9}\b(?!_)")
FOREIGN = {"Permission denied", "database is locked", "too many connections"}


def test_every_message_of_the_troubleshooting_is_one_of_drover():
    named = [text for text in _MESSAGE.findall(SYMPTOMS.read_text()) if text not in FOREIGN]
    assert len(named) > 40
    assert [text for text in named if not _is_said(text)] == []
    assert not _is_said("there is no such message in Drover")


def _is_said(message: str) -> bool:
    """Whether each part between values is in a text of the code."""
    parts = [part.strip(" .") for part in _PLACEHOLDER.split(message)]
    return all(any(part in said for said in _texts()) for part in parts if part)


@cache
def _texts() -> list[str]:
    nodes = [node for module in modules() for node in ast.walk(module.tree)]
    constants = [node.value for node in nodes if isinstance(node, ast.Constant)]
    return [text for text in constants if isinstance(text, str)]


# --- the four paths ---------------------------------------------------------------------------


def _paths() -> dict[str, list[str]]:
    _, *sections = _SECTION.split(PATHS.read_text())
    parts = [section.strip().splitlines() for section in sections]
    return {head: [line for line in lines if line.strip()] for head, *lines in parts}


def test_four_paths_are_described_in_twelve_lines_each():
    assert len(_paths()) == 4
    assert {head: len(lines) for head, lines in _paths().items() if len(lines) > 12} == {}


@pytest.mark.parametrize("head", _paths())
def test_a_path_names_at_least_five_files_that_exist(head: str):
    named = _FILE.findall("\n".join(_paths()[head]))
    assert len(set(named)) >= 5
    assert [name for name in named if not (ROOT / name).is_file()] == []


# --- states -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("number", "moves"),
    [(0, RUN_MOVES), (1, WORK_MOVES), (2, SCHEDULE_MOVES)],
    ids=["runs", "work items", "schedules"],
)
def test_a_state_diagram_has_the_moves_of_the_code(number, moves):
    diagrams = [s for s in samples("mermaid") if s.page.name == "states.md"]
    drawn = set(_MOVE.findall(diagrams[number].text))
    assert drawn == {(str(old), str(new)) for old, several in moves.items() for new in several}


@pytest.mark.parametrize("model", [Run, WorkItem, Schedule], ids=lambda model: model.__name__)
def test_every_state_is_explained(model):
    explained = inline_code(DOCS / "concepts" / "states.md")
    assert {str(state) for state in model.State.values} <= set(explained)


# --- lists of the guides ----------------------------------------------------------------------


@pytest.mark.parametrize(
    ("page", "names"),
    [
        ("guides/why-did-it-not-run.md", Firing.Reason.values),
        ("guides/credentials.md", CREDENTIAL_TYPES),
        ("reference/configuration.md", PROVIDERS),
        ("concepts/glossary.md", ("run", "work item", "slot", "lease", "firing", "delivery")),
    ],
    ids=["reasons", "credential types", "providers", "terms"],
)
def test_a_list_of_the_documentation_is_complete(page, names):
    text = (DOCS / page).read_text()
    assert [
        str(name) for name in names if f"`{name}`" not in text and f"\n{name}\n" not in text
    ] == []


def test_the_glossary_defines_each_term_once_and_in_order():
    text = (DOCS / "concepts" / "glossary.md").read_text()
    terms = re.findall(r"^(\w[\w ]*)\n:   ", text, re.MULTILINE)
    assert len(terms) > 25
    assert terms == sorted(set(terms))


# --- faults -----------------------------------------------------------------------------------

RELIABILITY = DOCS / "concepts" / "reliability.md"
NOT_COVERED_HERE: set[str] = set()
_FAULT = re.compile(r"\bF\d+\b")


def test_every_fault_of_a_marker_is_in_the_table():
    assert marked_tests().keys() <= faults().keys()


def test_every_fault_has_a_test():
    assert faults().keys() - marked_tests().keys() == NOT_COVERED_HERE
    rows = RELIABILITY.read_text().splitlines()
    listed = {row.split(" | ")[0].strip("| ") for row in rows if NOT_COVERED in row}
    assert listed == NOT_COVERED_HERE


@cache
def on_postgres() -> list[str]:
    """The paths of the tests that CI runs on PostgreSQL, as the Makefile lists them."""
    asked = ["make", "--print-data-base", "--question", "--file", str(ROOT / "Makefile"), "clean"]
    printed = subprocess.run(asked, cwd=ROOT, capture_output=True, text=True, check=False).stdout
    (line,) = (line for line in printed.splitlines() if line.startswith("ON_ROWS :="))
    return [word for word in line.split() if word.startswith("tests/")]


@pytest.mark.parametrize(
    "identity", [identity for identity, one in faults().items() if "databases" in one]
)
def test_a_fault_that_concerns_the_database_is_proven_on_each_database_of_the_table(identity: str):
    """Guard: a test that is collected on one of the databases only proves nothing about both."""
    files = {place for place, _ in marked_tests()[identity]}
    listed = on_postgres()
    there = {file for file in files if any(file.startswith(path) for path in listed)}
    here = {file for file in files if "postgres" not in Path(file).name}
    proven = {(True, True): "both", (True, False): "SQLite", (False, True): "PostgreSQL"}
    assert proven[bool(here), bool(there)] == faults()[identity]["databases"]


def test_every_promise_names_its_faults_and_tests():
    text = RELIABILITY.read_text().partition("## Promises")[2].partition("## Faults")[0]
    rows = [line.strip("| ").split(" | ") for line in text.splitlines() if line.startswith("| ")]
    assert len(rows) > 6
    for promise, _, ids, tests in rows[1:]:
        named = _FAULT.findall(ids)
        assert named and set(named) <= faults().keys(), promise
        marked = {place for identity in named for place, _ in marked_tests()[identity]}
        assert set(_FILE.findall(tests)) & marked, f"{promise}: no test is marked with {ids}"


def test_each_threat_is_in_the_security_model_once():
    text = (DOCS / "concepts" / "security.md").read_text()
    (section,) = [part for part in _SECTION.split(text) if part.startswith("Threats and measures")]
    threats = [line.split("|")[1].strip() for line in section.splitlines() if line[:1] == "|"]
    assert len(threats) > 10
    assert len(threats) == len(set(threats))
