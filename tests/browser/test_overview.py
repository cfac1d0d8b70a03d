"""The overview, the machines and the doctor in a real Chromium."""

import re

import pytest
from playwright.sync_api import Page, expect

from tests.browser.accessibility import assert_accessible
from tests.browser.conftest import OpenPage
from tests.browser.watch import Watch
from tests.parts.stack_part import PrivateStack

WALKER = """---
description: Walks until a file exists
command: [sh, -c, "while [ ! -e {stop} ]; do sleep 0.1; done"]
---
Walk.
"""
BREAKER = """---
description: Fails
command: [sh, -c, "echo '<b>no</b>'; exit 3"]
---
Fail.
"""
STREAM = "/v1/notifications/stream"
PAGES = ("", "?hours=24", "doctor/", "workers/", "credentials/")


@pytest.fixture(scope="module")
def stop_file(tmp_path_factory: pytest.TempPathFactory):
    return tmp_path_factory.mktemp("walk") / "stop"


@pytest.fixture(scope="module")
def fleet(stop_file) -> dict[str, str]:
    return {"walker": WALKER.format(stop=stop_file), "breaker": BREAKER}


def press_run(page: Page, agent: str) -> None:
    """Start a run on the overview."""
    page.goto("/admin/")
    page.locator(".dv-agents tr", has_text=agent).get_by_role("button", name="Run now").click()


def test_a_run_appears_and_ends_on_the_timeline_without_a_reload(
    page: Page, open_page: OpenPage, stop_file
):
    other = open_page()
    page.goto("/admin/")
    expect(page.locator("#dv-live")).to_have_text("Live")
    page.evaluate("window.neverLoadedAgain = true")
    page.locator(".dv-agents a", has_text="breaker").focus()
    press_run(other, "walker")
    bar = page.get_by_role("group", name="walker: 1 run").get_by_role("link")
    expect(bar).to_have_class(re.compile("dv-running"))
    expect(bar).to_have_accessible_name(re.compile(r"^walker: run \d+ running since \d\d:"))
    expect(page.locator(".dv-card", has_text="Running")).to_contain_text("1")
    stop_file.touch()
    expect(bar).to_have_class(re.compile("dv-succeeded"))
    expect(page.locator(".dv-agents tr", has_text="walker")).to_contain_text("succeeded")
    assert page.evaluate("window.neverLoadedAgain") is True
    # The keyboard focus is kept.
    assert page.evaluate("document.activeElement.textContent") == "breaker"
    bar.focus()
    page.keyboard.press("Enter")
    expect(page).to_have_url(re.compile(r"/admin/runs/\d+/change/$"))


def test_a_failure_is_shown_as_a_toast_on_any_page(
    page: Page, open_page: OpenPage, stack: PrivateStack
):
    other = open_page()
    page.goto(f"{stack.url}/admin/tenants/")
    expect(page.locator("#dv-live")).to_have_text("Live")
    press_run(other, "breaker")
    toast = page.get_by_role("region", name="Notices").locator(".dv-toast")
    expect(toast).to_contain_text("breaker failed")
    expect(toast.get_by_role("link")).to_have_attribute("href", re.compile(r"/runs/\d+/change/"))
    assert_accessible(page)
    toast.get_by_role("button", name="Dismiss").press("Enter")
    expect(toast).to_have_count(0)


def test_each_failed_rule_has_its_own_toast_with_a_link_to_the_rules(
    page: Page, stack: PrivateStack
):
    page.goto(f"{stack.url}/admin/tenants/")
    dispatch = "detail => document.dispatchEvent(new CustomEvent('drover:event', {detail}))"
    details = [
        "rule one: exit 3; not again before 9:00",
        "rule two: exit 3",
        "rule one: exit 3 (2 …)",
    ]
    for detail in details:
        page.evaluate(dispatch, {"kind": "rule.failed", "agent_id": None, "detail": detail})
    corner = page.get_by_role("region", name="Notices")
    toasts = corner.locator(".dv-toast", has_text="A rule failed")
    expect(toasts).to_have_count(2)
    expect(toasts.filter(has_text="rule one")).to_contain_text("A rule failed (2 times)")
    expect(toasts.filter(has_text="rule two")).not_to_contain_text("times")
    toasts.first.get_by_role("link", name="rules").click()
    expect(page).to_have_url(f"{stack.url}/admin/rules/")


def hide(page: Page, hidden: bool) -> None:
    page.evaluate(
        """value => {
            Object.defineProperty(document, "visibilityState", {value, configurable: true});
            document.dispatchEvent(new Event("visibilitychange"));
        }""",
        "hidden" if hidden else "visible",
    )


def test_a_hidden_tab_has_no_stream_and_a_broken_stream_reconnects(page: Page, watched: Watch):
    page.goto("/admin/")
    sign = page.locator("#dv-live")
    expect(sign).to_have_text("Live")
    with page.expect_event("requestfailed", lambda request: STREAM in request.url):
        hide(page, True)
    page.route(f"**{STREAM}*", lambda route: route.abort())
    hide(page, False)
    expect(sign).to_have_text("Reconnecting")
    page.unroute(f"**{STREAM}*")
    expect(sign).to_have_text("Live", timeout=20_000)
    assert all("ERR_FAILED" in each and STREAM in each for each in watched.take())


def test_the_findings_of_doctor_are_loaded_after_the_page(page: Page, stack: PrivateStack):
    page.goto(f"{stack.url}/admin/doctor/")
    findings = page.locator("#dv-findings")
    expect(findings).to_contain_text("Healthy")
    expect(findings.locator("li", has_text="workers")).to_contain_text("1 alive")
    page.get_by_role("button", name="Check database invariants").click()
    expect(findings.locator("li", has_text="invariants")).to_contain_text("hold")


def test_a_command_can_be_copied(page: Page, stack: PrivateStack):
    page.goto(f"{stack.url}/admin/credentials/")
    page.get_by_role("button", name="Copy").click()
    expect(page.get_by_role("button", name="Copied")).to_be_visible()


def test_on_a_phone_the_menu_opens_with_a_key(phone: Page):
    phone.goto("/admin/")
    link = phone.locator("#nav-sidebar a[href='/admin/schedules/']")
    expect(link).to_be_hidden()
    menu = phone.get_by_role("button", name="Menu").first
    menu.focus()
    phone.keyboard.press("Enter")
    expect(link).to_be_visible()


def test_every_page_is_legible_in_the_dark_and_fits_a_phone(dark_phone: Page, stack: PrivateStack):
    page = dark_phone
    for path in PAGES:
        page.goto(f"{stack.url}/admin/{path}")
        # Content that is loaded after the page.
        expect(page.get_by_text("Loading …")).to_have_count(0)
        assert page.evaluate("document.documentElement.scrollWidth <= innerWidth"), path
        assert_accessible(page)
    page.goto(f"{stack.url}/admin/workers/")
    page.locator("#result_list tbody a").first.click()
    expect(page.locator("#dv-worker")).to_contain_text("Threads in use")
    assert_accessible(page)
