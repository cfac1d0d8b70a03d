"""The pages of the admin in a real Chromium on a real gateway."""

import re
from typing import Literal

import pytest
from playwright.sync_api import Page, expect

from tests.browser.accessibility import assert_accessible, findings
from tests.browser.chromium import log_in
from tests.browser.watch import Watch
from tests.parts.stack_part import PrivateStack

# Toasts disappear after a while; their texts are kept.
KEEP_TOASTS = """() => {
    window.shownToasts = [];
    new MutationObserver(all => all.forEach(one => one.addedNodes.forEach(
        toast => window.shownToasts.push(toast.textContent)
    ))).observe(document.querySelector(".dv-toasts"), {childList: true});
}"""
# Red, green and blue from 0 to 255, in whatever notation the style has them.
COLOUR = """element => {
    const canvas = new OffscreenCanvas(1, 1).getContext("2d");
    canvas.fillStyle = getComputedStyle(element).color;
    canvas.fillRect(0, 0, 1, 1);
    return [...canvas.getImageData(0, 0, 1, 1).data].slice(0, 3);
}"""


def test_the_overview_is_updated_without_a_reload(page: Page, stack: PrivateStack):
    page.goto("/admin/")
    line = page.locator(".dv-agents tr", has_text="greeter")
    expect(page.locator(".dv-card", has_text="Workers")).to_contain_text("1")
    assert stack.manage("run", "greeter").returncode == 0
    expect(line).to_contain_text("1 / 1")
    # The page is updated without a reload.
    expect(line).to_contain_text("succeeded", timeout=20_000)


@pytest.mark.slow
def test_every_page_of_the_menu_follows_its_policy_and_is_accessible(
    page: Page, stack: PrivateStack
):
    """A violation of the policy is an error on the console, which fails the test."""
    page.goto("/admin/")
    links = page.locator("#nav-sidebar a, #nav-sidebar-apps a, aside a").evaluate_all(
        "all => all.map(a => a.href)"
    )
    pages = {link for link in links if link.startswith(f"{stack.url}/admin/")}
    assert len(pages) > 12
    for link in sorted(pages):
        answer = page.goto(link)
        assert answer is not None
        assert "frame-ancestors 'none'" in answer.headers["content-security-policy"]
        # Alpine has started when the switch between light and dark works.
        assert page.evaluate("typeof window.Alpine") == "object", link
        # Content that is loaded after the page.
        expect(page.get_by_text("Loading …")).to_have_count(0)
        assert_accessible(page)


def test_an_accessibility_problem_is_found(page: Page):
    page.goto("/admin/")
    pale = "<p style='color: #bbb; background: #fff'>pale</p>"
    page.evaluate("(text) => document.body.insertAdjacentHTML('beforeend', text)", pale)
    assert any(found.startswith("color-contrast (serious): <p style=") for found in findings(page))
    with pytest.raises(AssertionError, match="color-contrast"):
        assert_accessible(page)


def test_a_read_only_user_sees_no_buttons(viewer: Page, stack: PrivateStack):
    viewer.goto("/admin/")
    expect(viewer.locator("#fleet")).to_contain_text("greeter")
    expect(viewer.get_by_role("button", name="Run now")).to_have_count(0)
    assert_accessible(viewer)


def test_an_error_on_a_page_fails_its_test(page: Page, stack: PrivateStack, watched: Watch):
    page.goto(f"{stack.url}/admin/no-such-page/")
    page.evaluate("console.warn('look at this')")
    page.evaluate("setTimeout(() => { throw new Error('broken') })")
    page.evaluate("fetch('http://127.0.0.1:1/').catch(() => 0)")
    errors = " ".join(watched.take())
    assert all(word in errors for word in ("404", "look at this", "broken"))
    watched.foreign.clear()


def test_the_api_is_documented_by_a_page_that_works_without_eval(page: Page, stack: PrivateStack):
    answer = page.goto(f"{stack.url}/v1/docs")
    assert answer is not None
    policy = answer.headers["content-security-policy"]
    assert "script-src 'self';" in policy and "eval" not in policy
    page.locator(".opblock-summary", has_text="/v1/agents").first.click()
    page.get_by_role("button", name="Try it out").click()
    page.get_by_role("button", name="Execute").click()
    expect(page.locator(".live-responses-table").first).to_contain_text("200")


def test_the_state_of_rules_is_updated_on_every_page(page: Page, stack: PrivateStack):
    """The label in the header, the toast and the table are updated without a reload."""
    page.goto("/admin/")
    expect(page.locator("#dv-sch")).to_have_text("SCH --")
    rules = stack.project / "scheduler.rules"
    rules.write_text(
        '[fine] every 1s => run "true"\n'
        '[oh-no] every 1s => run "echo oh no; exit 3"\n'
        "every 5x => pause greeter\n"
    )
    page.evaluate(KEEP_TOASTS)
    toasts = page.locator(".dv-toasts")
    expect(toasts).to_contain_text("scheduler.rules has lines with errors", timeout=25_000)
    expect(toasts).to_contain_text("A rule failed", timeout=25_000)
    expect(page.locator("#dv-sch")).to_have_text("SCH 2 !2")
    expect(page.locator("#dv-sch")).to_have_class(re.compile("dv-sch-wait"))
    # A rule that succeeds is silent.
    stack.wait_for_rows("SELECT id FROM drover_rule WHERE name = 'fine' AND status = 'ok'")
    assert [text for text in page.evaluate("window.shownToasts") if "fine" in text] == []
    page.locator("#dv-sch").click()
    expect(page.locator("#dv-rule-errors")).to_contain_text("every 5x => pause greeter")
    expect(page.locator(".dv-rules tr", has_text="oh-no")).to_contain_text("!1 bk")
    page.get_by_placeholder("Until, e.g. in 2 hours").fill("in 2 hours")
    page.get_by_role("button", name="Silence messages").click()
    expect(page.locator("#dv-rules")).to_contain_text("(by admin)")
    assert_accessible(page)
    page.get_by_role("link", name="oh-no").click()
    expect(page.locator(".dv-output")).to_contain_text("oh no")
    assert_accessible(page)
    rules.unlink()


def test_disabled_rules_are_announced_and_shown_in_red(page: Page, stack: PrivateStack):
    """Beat really fails to read the damaged row; four of the five allowed failures are set."""
    rules = stack.project / "scheduler.rules"
    rules.write_text('[calm] every 1s => run "true"\n')
    stack.wait_for_rows("SELECT id FROM drover_rule WHERE name = 'calm'")
    page.goto("/admin/tenants/")
    label = page.locator("#dv-sch")
    expect(label).to_have_text("SCH 1")
    stack.rows("UPDATE drover_rule_book SET crashes = 4, crash_fingerprint = fingerprint")
    stack.rows("UPDATE drover_rule SET evaluated_at = 'yesterday'")
    toast = page.locator(".dv-toast", has_text="Rules disabled")
    expect(toast).to_contain_text("after 5 failed evaluations in a row", timeout=25_000)
    expect(label).to_have_text("SCH X")
    red, green, blue = label.evaluate(COLOUR)
    assert red > 2 * max(green, blue)
    expect(label).to_have_attribute("title", re.compile("disabled, because"))
    stack.rows("UPDATE drover_rule SET evaluated_at = NULL")
    rules.unlink()


@pytest.mark.parametrize("look", ["light", "dark"])
def test_nothing_is_wider_than_the_window(page: Page, look: Literal["light", "dark"]):
    page.emulate_media(color_scheme=look)
    schedules = ("schedules/", "firings/", "schedules/add/")
    for path in ("agents/", "runs/", "rules/", *schedules, ""):
        page.goto(f"/admin/{path}")
        assert page.evaluate("document.documentElement.scrollWidth <= innerWidth"), path
    background = page.evaluate("getComputedStyle(document.querySelector('.dv-panel')).background")
    assert ("rgb(255, 255, 255)" in background) == (look == "light")


def test_a_session_that_ended_leads_to_the_login_page(
    page: Page, stack: PrivateStack, passwords: dict[str, str], watched: Watch
):
    page.context.clear_cookies()
    log_in(page, stack.url, "admin", passwords["admin"])
    (key,) = (each["value"] for each in page.context.cookies() if "session" in each["name"])
    stack.rows("DELETE FROM django_session WHERE session_key = ?", key)
    page.wait_for_url("**/admin/login/**", timeout=15_000)
    # The stream may connect again before the page is left, and is refused.
    assert [each for each in watched.take() if "401" not in each] == []
