"""Nothing in the repository points to one machine, or to where packages came from."""

import re
from pathlib import Path

import pytest

from agents_app.conf import ROOT
from tests.codebase.source import tracked_files

# Put together, so that this file is not found by its own search.
PLACES = [
    re.escape(str(ROOT)),
    re.escape(str(Path.home())) + "/",
    "/" + "work/(main|shared)",
    "/" + "tmp/drover" + r"/",
    "/" + "root/",
]
REGISTRIES = [
    r"files\.python" + "hosted",
    r"py" + r"pi\.[a-z.]+/simple",
    "index" + "-url",
    "find" + "-links",
    r"registry\.[a-z-]+\.[a-z]{2,}",
    r"(artifactory|nexus)[.\w-]*\.[a-z]{2,}/",
]


def mentions(patterns: list[str], text: str) -> list[tuple[int, str]]:
    found = re.compile("|".join(patterns))
    lines = enumerate(text.splitlines(), start=1)
    return [(number, line.strip()[:100]) for number, line in lines if found.search(line)]


def _texts() -> list[tuple[Path, str]]:
    found = []
    for path in tracked_files():
        try:
            found.append((path.relative_to(ROOT), path.read_text()))
        except UnicodeDecodeError:
            continue  # an image
    return found


def test_there_are_files_to_look_at():
    assert len(_texts()) > 100


@pytest.mark.parametrize(
    "patterns", [PLACES, REGISTRIES], ids=["a place on one machine", "a registry"]
)
def test_no_file_mentions(patterns: list[str]):
    wrong = [
        f"{path}:{number}: {line}"
        for path, text in _texts()
        for number, line in mentions(patterns, text)
    ]
    assert wrong == []


def test_the_search_finds_what_it_looks_for():
    assert mentions(PLACES, f"cd {ROOT}/tests")
    assert mentions(REGISTRIES, "--index" + "-url https://example.org")
