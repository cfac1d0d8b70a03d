"""The page of a run in a real Chromium: its log, its buttons and its tree of calls."""

import re
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Page, expect

from agents_app.conf import ROOT
from tests.browser.accessibility import assert_accessible
from tests.parts.stack_part import PrivateStack

# Prints in steps, each when a file exists, so that the test does not depend on speed.
PAINTER = """---
description: Prints whatever terminals understand
command: ["sh", "-c", "exec sh $DROVER_AGENT_DIR/paint.sh"]
---
Paint.
"""
PAINT = r"""
go() { until [ -e "$DROVER_AGENT_DIR/go-$1" ]; do sleep 0.1; done; }
printf '\033[1;31mred and bold\033[0m \033[38;5;208morange\033[0m \033]0;title\007\n'
echo '<script>window.owned = 1</script><img src=x onerror="window.owned = 1">'
echo 'careful' >&2
go 1
for n in $(seq 199); do echo "row $n"; done
printf ' 10%%\r 50%%\r'
drover progress 50 'half of it is <b>done</b>' >/dev/null
go 2
printf '100%%\n'
for n in $(seq 200 250); do echo "row $n"; done
echo 'a late needle'
go 3
echo 'the end'
"""
SLEEPER = """---
description: Sleeps until it is stopped
command: [sh, -c, "echo asleep; sleep 600"]
---
Sleep.
"""
# More lines than the page has at first, so that earlier lines have to be loaded.
PRINTER = """---
description: Prints a lot
command: [sh, -c, "echo 'a hidden needle'; seq -f 'row %g' 700"]
---
Print.
"""


@pytest.fixture(scope="module")
def fleet() -> dict[str, str]:
    examples = ROOT / "examples/agents"
    named = {name: (examples / name / "SKILL.md").read_text() for name in ("planner", "surveyor")}
    return {"painter": PAINTER, "sleeper": SLEEPER, "printer": PRINTER, **named}


@pytest.fixture(scope="module", autouse=True)
def _programs(agents: Path) -> None:
    (agents / "painter/paint.sh").write_text(PAINT)
    for name, script in (("planner", "plan.sh"), ("surveyor", "survey.sh")):
        program = agents / name / script
        program.write_bytes((ROOT / "examples/agents" / name / script).read_bytes())
        program.chmod(0o755)


def started(stack: PrivateStack, agent: str, *arguments: str) -> int:
    """Start a run; returns its id."""
    answer: dict[str, Any] = stack.manage_json("run", agent, *arguments)
    return int(answer["run"])


def open_run(page: Page, stack: PrivateStack, run: int) -> None:
    page.goto(f"{stack.url}/admin/runs/{run}/change/")


def go(stack: PrivateStack, step: int) -> None:
    (stack.project / f"agents/painter/go-{step}").touch()


def at_end(page: Page) -> bool:
    measured = "e => e.scrollHeight - e.scrollTop - e.clientHeight < 40"
    return bool(page.locator("#dv-log").evaluate(measured))


@pytest.fixture(scope="module")
def painted(stack: PrivateStack) -> int:
    return started(stack, "painter")


def assert_styles_are_shown_and_markup_is_text(page: Page) -> None:
    log, lines = page.locator("#dv-log"), page.locator("#dv-log .dv-line")
    expect(lines).to_have_count(3)
    red = lines.first.locator(".dv-fg-1.dv-bold")
    expect(red).to_have_text("red and bold")
    expect(lines.first.get_by_text("orange")).to_have_css("color", "rgb(255, 135, 0)")
    expect(log).to_contain_text('<img src=x onerror="window.owned = 1">')
    expect(page.locator("#dv-log .dv-stderr")).to_have_text(re.compile("careful$"))
    assert log.locator("script, img").count() == 0


def assert_the_log_grows_without_a_reload(page: Page, stack: PrivateStack) -> None:
    lines = page.locator("#dv-log .dv-line")
    page.evaluate("window.same = true")
    go(stack, 1)
    expect(lines).to_have_count(203)
    expect(lines.last.locator(".dv-text")).to_have_text(" 50%")
    assert at_end(page)
    expect(page.locator("#dv-run-facts progress")).to_have_attribute("value", "50")
    expect(page.locator("#dv-status-text")).to_have_text("half of it is <b>done</b>")


def assert_scrolling_up_stops_following(page: Page, stack: PrivateStack) -> None:
    log, lines = page.locator("#dv-log"), page.locator("#dv-log .dv-line")
    log.evaluate("e => { e.scrollTop = 0 }")
    expect(page.locator("#dv-log-follow")).not_to_be_checked()
    page.fill("#dv-log-find", "row 1")
    expect(page.locator("#dv-log-count")).to_have_text("111 of 111 lines")
    page.keyboard.press("Enter")
    expect(page.locator("#dv-log-count")).to_have_text("1 of 111 lines")
    expect(page.locator(".dv-current")).to_contain_text("row 1")
    page.get_by_role("button", name="Previous match").click()
    expect(page.locator(".dv-current")).to_contain_text("row 199")
    page.fill("#dv-log-find", "needle")
    expect(page.locator("#dv-log-count")).to_have_text("not found")
    log.evaluate("e => { e.scrollTop = 0 }")
    go(stack, 2)
    expect(page.locator("#dv-log-count")).to_have_text("1 line")
    assert page.evaluate("CSS.highlights.get('dv-found').size") == 1
    assert log.evaluate("e => e.scrollTop") == 0
    expect(lines.nth(202).locator(".dv-text")).to_have_text("100%")


def test_a_log_grows_is_followed_and_searched_and_shows_markup_as_text(
    page: Page, stack: PrivateStack, painted: int
):
    open_run(page, stack, painted)
    assert_styles_are_shown_and_markup_is_text(page)
    assert_the_log_grows_without_a_reload(page, stack)
    assert_scrolling_up_stops_following(page, stack)
    # At the end of the log the page follows it again.
    lines = page.locator("#dv-log .dv-line")
    page.check("#dv-log-follow")
    go(stack, 3)
    expect(lines.last).to_contain_text("the end")
    expect(page.locator("#dv-facts")).to_contain_text("succeeded")
    expect(page.locator("#dv-timeline")).to_contain_text("run.succeeded")
    assert at_end(page)
    assert page.evaluate("[window.same, window.owned ?? null]") == [True, None]


def test_streams_times_and_line_numbers_can_be_shown_and_hidden(
    page: Page, stack: PrivateStack, painted: int
):
    open_run(page, stack, painted)
    shown = page.locator("#dv-log .dv-line:visible")
    expect(shown).to_have_count(256)
    page.select_option("#dv-log-streams", "stderr")
    expect(shown).to_have_count(1)
    page.select_option("#dv-log-streams", "")
    expect(page.locator("#dv-log time").first).to_be_visible()
    page.uncheck("#dv-log-times")
    expect(page.locator("#dv-log time").first).to_be_hidden()
    # The next log has the same settings.
    page.reload()
    expect(page.locator("#dv-log time").first).to_be_hidden()
    with page.expect_download() as download:
        page.get_by_role("link", name="Download as text").click()
    assert "row 250\na late needle\nthe end\n" in Path(download.value.path()).read_text()


EARLIER = ": press Enter to search earlier lines"


def test_a_search_names_the_searched_lines_and_enter_searches_earlier_lines(
    page: Page, stack: PrivateStack
):
    run = started(stack, "printer")
    over = "SELECT id FROM drover_run WHERE id = ? AND finished_at IS NOT NULL"
    stack.wait_for_rows(over, run)
    open_run(page, stack, run)
    lines, count = page.locator("#dv-log .dv-line"), page.locator("#dv-log-count")
    expect(lines).to_have_count(300)
    page.fill("#dv-log-find", "row 150")
    expect(count).to_have_text(f"not found in the last 300 lines{EARLIER}")
    page.keyboard.press("Enter")
    # Lines before the match are not loaded.
    expect(count).to_have_text("1 of 1 line in the last 600")
    expect(page.locator(".dv-current")).to_contain_text("row 150")
    expect(lines).to_have_count(600)
    page.fill("#dv-log-find", "nowhere")
    expect(count).to_have_text(f"not found in the last 600 lines{EARLIER}")
    page.keyboard.press("Enter")
    expect(count).to_have_text("not found")
    page.fill("#dv-log-find", "hidden needle")
    expect(count).to_have_text("1 of 1 line")
    numbers = lines.evaluate_all("rows => rows.map(row => Number(row.dataset.number))")
    assert numbers == list(range(701))


def test_a_run_is_stopped_and_rerun_from_its_page(page: Page, stack: PrivateStack):
    run = started(stack, "sleeper")
    open_run(page, stack, run)
    expect(page.locator("#dv-log")).to_contain_text("asleep")
    expect(page.locator("#dv-run-facts")).to_contain_text("kills them after")
    page.get_by_role("button", name="Stop").click()
    expect(page.locator("#dv-facts")).to_contain_text("stopped", timeout=20_000)
    expect(page.get_by_role("button", name="Stop")).to_have_count(0)
    expect(page.locator("#dv-run-facts")).to_contain_text("stopped by admin")
    page.get_by_role("button", name="Rerun").click()
    expect(page.locator("#main")).to_contain_text("Rerun queued: run")
    asked = f"admin, rerun of run {run}"
    (again,) = stack.wait_for_rows("SELECT id FROM drover_run WHERE requested_by = ?", asked)
    open_run(page, stack, again["id"])
    cause = page.locator("#dv-causes > ul > li").get_by_role("link").first
    expect(cause).to_have_text(f"Run {run}")
    page.get_by_role("button", name="Stop").click()
    expect(page.locator("#dv-facts")).to_contain_text("stopped", timeout=20_000)


def test_the_tree_of_calls_is_updated_and_has_links_to_the_runs(page: Page, stack: PrivateStack):
    open_run(page, stack, started(stack, "planner"))
    called = page.locator("#dv-causes").get_by_role("link", name=re.compile("surveyor, run"))
    expect(called).to_have_count(3, timeout=30_000)
    expect(page.locator("#dv-facts")).to_contain_text("succeeded", timeout=30_000)
    called.first.click()
    here = page.locator('#dv-causes [aria-current="true"]')
    expect(here).to_have_text(re.compile("surveyor, run"))
    expect(page.locator("#dv-log")).to_contain_text("surveying the")
    page.locator("#dv-causes").get_by_role("link", name=re.compile("planner, run")).click()
    expect(here).to_have_text(re.compile("planner, run"))


def test_a_read_only_user_sees_the_whole_run_and_no_buttons(
    viewer: Page, stack: PrivateStack, painted: int
):
    open_run(viewer, stack, painted)
    expect(viewer.locator("#dv-log")).to_contain_text("the end")
    expect(viewer.locator(".dv-act")).to_have_count(0)
    token = next(c["value"] for c in viewer.context.cookies() if "csrf" in c["name"])
    refused = viewer.request.post(
        f"{stack.url}/admin/runs/{painted}/act/rerun/",
        headers={"X-CSRFToken": token, "Referer": stack.url},
    )
    assert refused.status == 403


def test_a_run_page_is_accessible_in_any_colours_and_width(
    dark_phone: Page, stack: PrivateStack, painted: int
):
    page = dark_phone
    open_run(page, stack, painted)
    expect(page.locator("#dv-log")).to_contain_text("the end")
    assert_accessible(page)
    assert page.evaluate("document.documentElement.scrollWidth <= window.innerWidth")
