"""Deliveries in a real Chromium: shown, replayed, and tested without a run."""

import json
from urllib.request import Request, urlopen

import pytest
from playwright.sync_api import Page, expect

from tests.browser.accessibility import assert_accessible
from tests.browser.watch import Watch
from tests.gateway_app.posting import ISSUE, SECRET, signed
from tests.parts.stack_part import PrivateStack

pytestmark = pytest.mark.slow

LISTENER = """---
description: Wants some of it
command: ["true"]
webhooks:
  - source: my-github
    {filters}
---
Read it.
"""
CONFIG = """[webhooks.my-github]
type = "github"
secrets = ["file:secret"]
"""
DELIVERIES = "/admin/deliveries/"
PLANTED = "<img src=x onerror=document.title='planted'>"


@pytest.fixture(scope="module")
def fleet() -> dict[str, str]:
    return {
        "triage": LISTENER.format(filters="events: [issues]"),
        "reviewer": LISTENER.format(filters="labels: [bug]"),
    }


@pytest.fixture(scope="module")
def deliveries(stack: PrivateStack) -> list[int]:
    """Two deliveries from GitHub, one of them with hostile content."""
    (stack.project / "secret").write_text(SECRET)
    (stack.project / "config.toml").write_text(CONFIG)
    stack.wait_for_rows("SELECT id FROM drover_webhook_source")
    hostile = ISSUE | {"issue": {**ISSUE["issue"], "title": PLANTED}}  # type: ignore[dict-item]
    return [post(stack, ISSUE, 1), post(stack, hostile, 2)]


def post(stack: PrivateStack, payload: object, number: int) -> int:
    """Post a delivery as GitHub does; the gateway reads a new source within two seconds."""
    sent = signed(payload, number)
    assert isinstance(sent.body, bytes)
    request = Request(f"{stack.url}{sent.path}", sent.body, dict(sent.headers))
    with urlopen(request) as answer:
        delivery: int = json.load(answer)["delivery"]
    return delivery


def go(page: Page, path: str) -> Page:
    page.goto(path)
    return page


def change(delivery: int) -> str:
    return f"{DELIVERIES}{delivery}/change/"


def test_a_delivery_shows_its_decisions_and_the_run_of_its_replay(
    page: Page, stack: PrivateStack, deliveries: list[int]
):
    go(page, change(deliveries[0]))
    reviewer = page.locator(".dv-decisions tr", has_text="reviewer")
    expect(reviewer).to_contain_text("labels expected bug, got nothing")
    expect(page.locator(".dv-headers")).to_contain_text("(not shown)")
    expect(page.get_by_role("region", name="Indented body")).to_contain_text('"title": "It broke"')
    page.get_by_role("button", name="Replay").click()
    expect(page.locator("#main")).to_contain_text("replayed: 1 matched, 1 skipped")
    work = page.locator("#dv-work tr", has_text="replay 1 of delivery")
    # The page is updated without a reload.
    expect(work).to_contain_text("Succeeded", timeout=20_000)
    work.locator("a.dv-outcome").click()
    page.wait_for_url("**/admin/runs/*/change/")
    noted = "SELECT detail FROM drover_run_event WHERE name = 'delivery.replayed'"
    assert stack.rows(noted) == [{"detail": f"admin: delivery {deliveries[0]}, 1 matched"}]


def test_several_deliveries_are_replayed_from_the_list(
    page: Page, stack: PrivateStack, deliveries: list[int]
):
    go(page, DELIVERIES)
    for delivery in deliveries:
        page.locator(f"input.action-select[value='{delivery}']").check()
    page.select_option("select[name=action]", "replay_selected")
    page.get_by_role("button", name="Run", exact=True).click()
    for delivery in deliveries:
        expect(page.locator("#main")).to_contain_text(f"delivery {delivery} replayed")
    replayed = "SELECT count(*) AS n FROM drover_delivery WHERE replays > 0"
    assert stack.rows(replayed) == [{"n": len(deliveries)}]


def test_the_list_shows_new_deliveries_unless_some_are_selected(
    page: Page, stack: PrivateStack, deliveries: list[int]
):
    rows = go(page, DELIVERIES).locator("#result_list tbody tr")
    before = rows.count()
    arrived = post(stack, ISSUE, 3)
    expect(rows).to_have_count(before + 1, timeout=20_000)
    chosen = page.locator(f"input.action-select[value='{arrived}']")
    chosen.check()
    with page.expect_response(lambda answer: "/deliveries/" in answer.url, timeout=20_000):
        post(stack, ISSUE, 4)
    expect(rows).to_have_count(before + 1)
    expect(chosen).to_be_checked()


def test_a_payload_is_tested_without_a_run(page: Page, stack: PrivateStack, deliveries: list[int]):
    work = stack.rows("SELECT count(*) AS n FROM drover_work_item")
    go(page, change(deliveries[1]))
    page.get_by_role("link", name="Test with current filters").click()
    sent = json.dumps({**ISSUE, "sent": "2"}).replace("It broke", PLANTED)
    expect(page.locator("#id_body")).to_have_value(sent)
    page.get_by_role("button", name="Test", exact=True).click()
    decisions = page.locator(".dv-decisions")
    expect(decisions.locator("tr", has_text="triage")).to_contain_text("matched")
    expect(decisions.locator("tr", has_text="reviewer")).to_contain_text("got nothing")
    page.get_by_text("Parsed payload").click()
    expect(page.locator(".dv-headers", has_text="sender")).to_contain_text(PLANTED)
    assert "planted" not in page.title()
    page.fill("#id_headers", "")
    page.get_by_role("button", name="Test", exact=True).click()
    expect(page.locator("#dv-results")).to_contain_text("in the header x-github-event")
    assert stack.rows("SELECT count(*) AS n FROM drover_work_item") == work


def test_the_pages_are_accessible(dark_phone: Page, deliveries: list[int]):
    page = dark_phone
    for path in (DELIVERIES, change(deliveries[0]), f"{DELIVERIES}test/?delivery={deliveries[0]}"):
        assert_accessible(go(page, path))
        assert page.evaluate("document.documentElement.scrollWidth <= innerWidth"), path
    page.get_by_role("button", name="Test", exact=True).click()
    expect(page.locator(".dv-decisions")).to_be_visible()
    assert_accessible(page)


def test_a_read_only_user_sees_deliveries_and_cannot_replay_them(
    viewer: Page, stack: PrivateStack, deliveries: list[int], watched: Watch
):
    go(viewer, change(deliveries[1]))
    expect(viewer.locator(".dv-decisions")).to_contain_text("triage")
    expect(viewer.get_by_role("button", name="Replay")).to_have_count(0)
    replays = stack.rows("SELECT id, replays FROM drover_delivery ORDER BY id")
    act = f"{stack.url}{DELIVERIES}{deliveries[1]}/act/replay/"
    token = viewer.locator("input[name=csrfmiddlewaretoken]").first.get_attribute("value") or ""
    refused = viewer.request.post(act, form={"csrfmiddlewaretoken": token})
    assert refused.status == 403
    assert stack.rows("SELECT id, replays FROM drover_delivery ORDER BY id") == replays
    assert watched.take() == []
