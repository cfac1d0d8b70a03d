"""The claims of reference/origins.md: numbered without holes, judged, and shown by real tests."""

import ast
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

from agents_app.conf import ROOT
from tests.docs.generate.origins import STATUSES, Claim, Origin, origins

LEAST_CLAIMS = 294
ALL = [claim for origin in origins() for claim in origin.claims]
BY_DOCUMENT = pytest.mark.parametrize("origin", origins(), ids=[one.number for one in origins()])


@cache
def names_of_tests(path: Path) -> frozenset[str]:
    """The tests of a file as pytest names them, without parameters; the file is not imported."""
    return frozenset(_names(ast.parse(path.read_text()).body))


def _names(body: list[ast.stmt], prefix: str = "") -> Iterator[str]:
    for node in body:
        match node:
            case ast.ClassDef(name=name) if name.startswith("Test"):
                yield from _names(node.body, f"{prefix}{name}::")
            case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name):
                yield from [prefix + name] if name.startswith("test_") else []


def exists(test: str, root: Path = ROOT) -> bool:
    """Whether `path::name` is a test that pytest would collect; `[...]` names one case of it."""
    place, _, name = test.partition("::")
    path = root / place
    is_collected = path.name.startswith("test_") and place.startswith("tests/")
    return is_collected and path.is_file() and name.partition("[")[0] in names_of_tests(path)


def test_there_are_five_documents_and_all_their_claims():
    assert [origin.number for origin in origins()] == ["000", "001", "002", "003", "004"]
    assert len(ALL) >= LEAST_CLAIMS


@BY_DOCUMENT
def test_the_numbers_of_a_document_have_no_holes(origin: Origin):
    count = len(list(origin.claims))
    expected = [f"{origin.number}.{number}" for number in range(1, count + 1)]
    assert [claim.id for claim in origin.claims] == expected


@BY_DOCUMENT
def test_a_claim_has_a_status_an_answer_and_a_test(origin: Origin):
    assert [claim.id for claim in origin.claims if not is_complete(claim)] == []


def is_complete(claim: Claim) -> bool:
    """A claim that is not met yet has no test; each other claim has at least one."""
    texts = (claim.claim, claim.how)
    is_answered = all(text.endswith(".") and len(text) > 5 for text in texts)
    is_shown = bool(claim.tests) is (claim.status != "later")
    once = len(set(claim.tests)) == len(claim.tests)
    return claim.status in STATUSES and is_answered and is_shown and once


@BY_DOCUMENT
def test_each_named_test_exists(origin: Origin):
    named = [(claim.id, test) for claim in origin.claims for test in claim.tests]
    assert [pair for pair in named if not exists(pair[1])] == []


def test_no_claim_is_written_twice():
    texts = [(claim.id.partition(".")[0], claim.claim) for claim in ALL]
    assert sorted(set(texts)) == sorted(texts)


def test_a_test_that_does_not_exist_is_found(tmp_path: Path):
    file = tmp_path / "tests" / "test_sample.py"
    file.parent.mkdir()
    file.write_text(
        "import pytest\n"
        "@pytest.mark.parametrize('n', [1])\n"
        "def test_plain(n):\n"
        "    def test_inner(): ...\n"
        "async def test_later(): ...\n"
        "def helper(): ...\n"
        "class TestGroup:\n"
        "    def test_member(self): ...\n"
        "class Other:\n"
        "    def test_hidden(self): ...\n"
    )
    (file.parent / "helpers.py").write_text("def test_plain(): ...\n")
    sample = "tests/test_sample.py"
    for name in ("test_plain", "test_plain[1]", "test_later", "TestGroup::test_member"):
        assert exists(f"{sample}::{name}", tmp_path), name
    for name in ("test_gone", "test_inner", "helper", "test_member", "Other::test_hidden", ""):
        assert not exists(f"{sample}::{name}", tmp_path), name
    assert not exists("tests/helpers.py::test_plain", tmp_path)
    assert not exists("tests/test_gone.py::test_plain", tmp_path)
