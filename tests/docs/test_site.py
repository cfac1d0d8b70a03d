"""The site is built without a warning, and needs no other host to be read."""

import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from mkdocs.commands.build import build
from mkdocs.config import load_config
from playwright.sync_api import Request

from agents_app.conf import ROOT
from tests.browser.chromium import chromium, chromium_path
from tests.parts.missing import missing

_LOADED = re.compile(r"<(?:script|img|link|iframe)\b[^>]*?\b(?:src|href)=\"?(https?:|//)")
DRAWN = {"concepts/architecture.html": 2, "concepts/states.html": 3}


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """Strict: a link that leads nowhere, or a page that is not in the menu, fails."""
    place = tmp_path_factory.mktemp("site")
    config = load_config(str(ROOT / "mkdocs.yml"), site_dir=str(place), strict=True)
    config.plugins.on_startup(command="build", dirty=False)
    build(config)
    yield place


def test_the_site_has_every_page(site: Path):
    expected = {path.relative_to(ROOT / "docs") for path in (ROOT / "docs").rglob("*.md")}
    built = {path.relative_to(site).with_suffix(".md") for path in site.rglob("*.html")}
    assert expected <= built


def test_no_page_loads_anything_from_another_host(site: Path):
    wrong = [path.name for path in site.rglob("*.html") if _LOADED.search(path.read_text())]
    assert wrong == []


def test_diagrams_are_drawn_without_a_network(site: Path):
    asked: list[str] = []

    def note(request: Request) -> None:
        if not request.url.startswith(("file:", "data:", "blob:")):
            asked.append(request.url)

    with chromium(chromium_path() or missing("chromium", "apt install chromium")) as browser:
        page = browser.new_page()
        page.on("request", note)
        for name, count in DRAWN.items():
            page.goto(f"file://{site / name}")
            # The theme replaces each block by a closed shadow tree: its size is what can be seen.
            page.wait_for_function(f"document.querySelectorAll('div.mermaid').length == {count}")
            heights = page.eval_on_selector_all(
                "div.mermaid", "all => all.map(one => one.getBoundingClientRect().height)"
            )
            assert min(heights) > 100, heights
    assert asked == []
