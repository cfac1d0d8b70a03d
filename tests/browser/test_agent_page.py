"""The page of an agent in a real Chromium: its content and its buttons."""

import pytest
from playwright.sync_api import Page, expect

from tests.browser.accessibility import assert_accessible
from tests.parts.stack_part import PrivateStack

pytestmark = pytest.mark.slow

TALKER = """---
description: Says what it was told
schedules:
  weekdays: {expression: "0 9 * * 1-5"}
params: {depth: 3}
command: [sh, -c, "cat; drover usage --tokens-in 1200 --cost-usd 0.5"]
---
# Talk

Say **everything**. <script>window.owned = 1</script>

![pixel](https://other.example/pixel.png)
[guide](https://other.example/) [no](javascript:window.owned=1)
"""


@pytest.fixture(scope="module")
def fleet() -> dict[str, str]:
    return {"talker": TALKER}


def open_agent(page: Page, stack: PrivateStack) -> None:
    (agent,) = stack.rows("SELECT id FROM drover_agent WHERE name = ?", "talker")
    page.goto(f"{stack.url}/admin/agents/{agent['id']}/change/")


def test_an_agent_is_run_with_a_prompt_and_its_page_is_updated(page: Page, stack: PrivateStack):
    open_agent(page, stack)
    expect(page.locator("#dv-agent-history")).to_contain_text("0 runs")
    page.get_by_label("Prompt (optional)").fill("first line\nsecond line")
    page.get_by_role("button", name="Run now").click()
    expect(page.locator("#main")).to_contain_text("talker: started")
    page.wait_for_url("**/admin/runs/*/change/")
    expect(page.locator("#dv-log")).to_contain_text("second line", timeout=20_000)
    open_agent(page, stack)
    runs = page.locator("#dv-agent-now .dv-table", has_text="Duration")
    expect(runs).to_contain_text("succeeded", timeout=20_000)
    asked = "SELECT requested_by FROM drover_work_item WHERE prompt = ?"
    assert stack.rows(asked, "first line\nsecond line") == [{"requested_by": "admin"}]
    page.reload()
    history = page.locator("#dv-agent-history")
    expect(history).to_contain_text("100.0 %")
    history.locator("summary").click()
    expect(history.locator("tbody tr").first).to_contain_text("1,200")
    expect(history.locator("tbody tr").first).to_contain_text("$0.50")
    runs.get_by_role("link", name="#").first.click()
    expect(page.locator("#dv-log")).to_contain_text("second line")


def test_the_instructions_are_rendered_without_active_content(page: Page, stack: PrivateStack):
    """An image would be a request to another host, which fails the test."""
    open_agent(page, stack)
    prose = page.locator(".dv-prose")
    expect(prose.get_by_role("heading", name="Talk")).to_be_visible()
    expect(prose.locator("strong")).to_have_text("everything")
    expect(prose).to_contain_text("<script>window.owned = 1</script>")
    expect(prose.get_by_role("link", name="guide")).to_have_attribute(
        "rel", "noopener noreferrer nofollow"
    )
    expect(prose.get_by_role("link", name="no")).to_have_count(0)
    expect(prose.locator("img")).to_have_count(0)
    expect(page.locator("#main")).to_contain_text("agents/talker/SKILL.md")
    expect(page.get_by_role("list", name="Next fires").get_by_role("listitem")).to_have_count(3)
    assert page.evaluate("window.owned ?? null") is None


def test_an_agent_is_paused_resumed_and_scaled_in_place(page: Page, stack: PrivateStack):
    now = page.locator("#dv-agent-now")
    open_agent(page, stack)
    page.get_by_placeholder("Reason (optional)").fill("lunch")
    page.get_by_role("button", name="Pause").click()
    expect(now).to_contain_text("paused")
    expect(now).to_contain_text("lunch")
    assert {"name": "talker"} in stack.rows(
        "SELECT name FROM drover_agent WHERE paused_at IS NOT NULL"
    )
    page.get_by_role("button", name="Resume").click()
    expect(now.locator(".dv-facts")).to_contain_text("enabled")
    page.get_by_label("Scale").fill("4")
    page.get_by_role("button", name="Set").click()
    expect(now.locator(".dv-facts")).to_contain_text("0 / 4")
    # Another user pauses the agent: typed text stays.
    page.get_by_label("Prompt (optional)").fill("half a thought")
    assert stack.manage("pause", "talker").returncode == 0
    expect(now.locator(".dv-facts")).to_contain_text("paused")
    expect(page.get_by_label("Prompt (optional)")).to_have_value("half a thought")
    assert stack.manage("resume", "talker").returncode == 0


def test_a_read_only_user_sees_no_verbs_of_an_agent(viewer: Page, stack: PrivateStack):
    open_agent(viewer, stack)
    expect(viewer.locator(".dv-prose")).to_be_visible()
    expect(viewer.locator("form[action*='/act/']")).to_have_count(0)
    token = next(c["value"] for c in viewer.context.cookies() if "csrf" in c["name"])
    refused = viewer.request.post(
        viewer.url.replace("/change/", "/act/pause/"),
        headers={"X-CSRFToken": token, "Referer": stack.url},
    )
    assert refused.status == 403


def test_an_agent_page_is_accessible_in_any_colours_and_width(
    dark_phone: Page, stack: PrivateStack
):
    page = dark_phone
    open_agent(page, stack)
    page.locator("#dv-agent-history summary").click()
    assert_accessible(page)
    assert page.evaluate("document.documentElement.scrollWidth <= window.innerWidth")
