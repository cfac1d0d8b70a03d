"""Schedules in a real Chromium: the form, the calendar, and explanations."""

import re

import pytest
from playwright.sync_api import Locator, Page, expect

from tests.browser.accessibility import assert_accessible
from tests.browser.conftest import OpenPage
from tests.browser.watch import Watch
from tests.parts.stack_part import PrivateStack

pytestmark = pytest.mark.slow

CLERK = """---
description: Is told when by people
command: ["true"]
---
Plan.
"""
TICKER = """---
description: Fires all the time
command: ["true"]
schedules:
  ticks: {cron: "* * * * *"}
  often: {interval: 3s}
  nightly: {cron: "30 2 * * *", timezone: Europe/Berlin}
---
Tick.
"""
SCHEDULES = "/admin/schedules/"
LEDGER = "/admin/firings/"


@pytest.fixture(scope="module")
def fleet() -> dict[str, str]:
    return {"clerk": CLERK, "ticker": TICKER}


@pytest.fixture
def in_tokyo(open_page: OpenPage) -> Page:
    """A page whose browser has another time zone than the server."""
    return open_page(timezone="Asia/Tokyo")


def go(page: Page, path: str) -> Page:
    page.goto(path)
    return page


def page_of(stack: PrivateStack, name: str) -> str:
    (row,) = stack.wait_for_rows("SELECT id FROM drover_schedule WHERE name = ?", name)
    return f"{SCHEDULES}{row['id']}/change/"


def understood(page: Page) -> Locator:
    return page.locator("#dv-form-preview")


def choose_agent(page: Page, name: str) -> None:
    page.locator(".field-agent .select2-selection").click()
    page.locator(".select2-results__option", has_text=name).click()


# --- the form -------------------------------------------------------------------------------


def test_a_schedule_is_created_from_a_phrase_with_a_preview_while_typing(
    page: Page, stack: PrivateStack
):
    go(page, f"{SCHEDULES}add/")
    expect(understood(page)).to_contain_text("Examples")
    page.fill("#id_timezone", "Asia/Tokyo")
    page.locator("#id_text").press_sequentially("in 30 minutes")
    expect(understood(page)).to_contain_text("Once, ")
    expect(understood(page).locator("tbody tr")).to_have_count(1)
    page.fill("#id_text", "every mondey at 7:30")
    expect(understood(page).locator("mark")).to_have_text("mondey")
    understood(page).get_by_role("button", name="every monday at 07:30", exact=True).click()
    expect(page.locator("#id_text")).to_have_value("every monday at 07:30")
    expect(understood(page)).to_contain_text("At 07:30, on Monday, in Asia/Tokyo")
    expect(understood(page).locator("tbody tr")).to_have_count(5)
    choose_agent(page, "clerk")
    page.fill("#id_name", "mornings")
    page.get_by_role("button", name="Save and continue editing").click()
    expect(page.locator("#main")).to_contain_text("was added successfully")
    expect(page.locator("#dv-next-fires")).to_contain_text("07:30 JST")
    made = "SELECT text, expression, source FROM drover_schedule WHERE name = 'mornings'"
    (schedule,) = stack.rows(made)
    assert schedule.pop("text") == "every monday at 07:30"
    assert schedule == {"expression": "30 7 * * 1", "source": "person"}


def test_a_text_that_is_not_understood_is_answered_with_examples(page: Page):
    go(page, f"{SCHEDULES}add/")
    page.fill("#id_text", "every now and then")
    expect(understood(page).locator(".dv-wrong")).to_contain_text("Cannot read")
    expect(understood(page)).not_to_contain_text("Did you mean")
    understood(page).get_by_role("button", name="every week", exact=True).click()
    expect(understood(page)).to_contain_text("At 09:00, on Monday")


def test_fires_are_shown_in_the_time_zone_of_the_browser(in_tokyo: Page):
    go(in_tokyo, f"{SCHEDULES}add/")
    in_tokyo.fill("#id_timezone", "UTC")
    in_tokyo.fill("#id_text", "every day at 09:00")
    expect(understood(in_tokyo).locator("th").nth(1)).to_have_text("Your time (Asia/Tokyo)")
    yours = understood(in_tokyo).locator("time").first
    expect(yours).to_have_text(re.compile(r"^\w{3} \d\d \w{3} \d{4} 18:00 "))
    in_tokyo.fill("#id_timezone", "Japan")
    expect(understood(in_tokyo)).to_contain_text("in Japan")
    expect(yours).to_be_hidden()


def test_the_effect_of_a_clock_change_policy_is_shown_before_saving(page: Page):
    go(page, f"{SCHEDULES}add/")
    page.fill("#id_timezone", "Europe/Berlin")
    page.fill("#id_text", "every day at 02:30")
    # The next clock change depends on the date of the test run.
    remark = understood(page).locator(
        ".dv-below", has_text=re.compile("does not exist that day|occurs twice")
    )
    expect(remark).to_have_count(1)
    page.select_option("#id_gap", "skip")
    page.select_option("#id_overlap_hour", "both")
    skipped_or_both = re.compile("and is skipped|the second time")
    expect(understood(page).locator(".dv-below", has_text=skipped_or_both)).to_be_visible()


# --- the calendar ---------------------------------------------------------------------------


def test_the_calendar_shows_the_week_with_links_to_schedules(page: Page, stack: PrivateStack):
    page_of(stack, "nightly")
    go(page, SCHEDULES).get_by_role("link", name="Calendar").first.click()
    days = page.locator(".dv-day")
    expect(days).to_have_count(7)
    tomorrow = days.nth(1)
    expect(tomorrow.locator(".dv-often", has_text="ticks")).to_contain_text("00:00 to 23:59")
    expect(tomorrow.locator(".dv-fire", has_text="nightly")).to_have_count(1)
    assert page.locator(".dv-fire").count() < 60
    page.get_by_role("link", name="Later").click()
    expect(days.first.locator(".dv-fire", has_text="nightly")).to_have_count(1)
    page.select_option("#dv-agent", label="ticker")
    page.get_by_role("button", name="Show").click()
    days.first.locator(".dv-fire", has_text="nightly").click()
    expect(page.locator("#dv-next-fires")).to_contain_text("At 02:30, every day, in Europe/Berlin")


def test_on_a_phone_the_calendar_is_a_list_of_days(phone: Page, stack: PrivateStack):
    page_of(stack, "nightly")
    go(phone, f"{SCHEDULES}calendar/")
    boxes = [box for day in phone.locator(".dv-day").all() if (box := day.bounding_box())]
    assert len({box["x"] for box in boxes}) == 1
    assert [box["y"] for box in boxes] == sorted({box["y"] for box in boxes})


# --- explanations ---------------------------------------------------------------------------


def test_the_page_of_a_schedule_explains_the_present_and_a_past_time(
    page: Page, stack: PrivateStack
):
    go(page, page_of(stack, "nightly"))
    page.get_by_placeholder("Reason (optional)").fill("holidays")
    page.get_by_role("button", name="Pause").click()
    expect(page.locator("#dv-why")).to_contain_text("The schedule is paused: holidays")
    page.fill("#dv-at", "2 days ago")
    page.get_by_role("button", name="Explain").click()
    expect(page.locator("#dv-answer")).to_contain_text("The schedule was created later")
    page.fill("#dv-at", "whenever")
    page.get_by_role("button", name="Explain").click()
    expect(page.locator("#dv-answer .dv-error")).to_contain_text("Cannot read")
    page.locator("form[action$='/act/resume/'] button").click()
    expect(page.locator("#dv-why")).to_contain_text("The schedule is active and")


def test_the_history_is_updated_when_the_schedule_fires(page: Page, stack: PrivateStack):
    stack.wait_for_rows("SELECT id FROM drover_firing WHERE outcome = 'started'")
    go(page, LEDGER)
    first = page.locator("#result_list tbody tr").first
    expect(first).to_contain_text("A slot was free")
    latest = first.get_by_role("link").first.get_attribute("href")
    assert latest is not None
    expect(first.get_by_role("link").first).not_to_have_attribute("href", latest, timeout=20_000)


# --- accessibility and permissions ----------------------------------------------------------


def test_the_pages_are_accessible(dark_phone: Page, stack: PrivateStack):
    page = dark_phone
    for path in (SCHEDULES, page_of(stack, "ticks"), f"{SCHEDULES}calendar/", LEDGER):
        assert_accessible(go(page, path))
        assert page.evaluate("document.documentElement.scrollWidth <= innerWidth"), path
    go(page, f"{SCHEDULES}add/").fill("#id_text", "evry day")
    expect(understood(page).locator("mark")).to_be_visible()
    assert_accessible(page)
    page.fill("#id_text", "every day")
    expect(understood(page).locator("tbody tr").first).to_be_visible()
    assert_accessible(page)
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")


def test_a_read_only_user_sees_schedules_and_cannot_change_them(
    viewer: Page, stack: PrivateStack, watched: Watch
):
    go(viewer, page_of(stack, "ticks"))
    expect(viewer.locator("#dv-why")).to_contain_text("The schedule is active")
    expect(viewer.locator("#dv-next-fires")).to_contain_text("Every minute")
    expect(viewer.get_by_role("button", name="Pause")).to_have_count(0)
    go(viewer, f"{SCHEDULES}calendar/")
    expect(viewer.locator(".dv-often").first).to_be_visible()
    assert viewer.goto(f"{stack.url}{SCHEDULES}add/").status == 403  # type: ignore[union-attr]
    assert any("403" in each for each in watched.take())
    agent = "SELECT id FROM drover_agent WHERE name = 'ticker'"
    states = f"SELECT DISTINCT state FROM drover_schedule WHERE agent_id = ({agent})"
    assert stack.rows(states) == [{"state": "active"}]
