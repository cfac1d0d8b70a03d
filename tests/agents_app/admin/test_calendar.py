"""The calendar of the coming week: limits, links, and the text of an empty calendar."""

from datetime import UTC, datetime
from typing import Any

import pytest
import time_machine
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext

from agents_app.admin import calendar as subject
from tests.agents_app.admin.test_schedules import page_of
from tests.agents_app.fleet import NOON, Fleet, at

CALENDAR = "/admin/schedules/calendar/"


def shown(client: Client, **asked: Any) -> Any:
    response = client.get(CALENDAR, asked)
    assert response.status_code == 200
    return response


def lines(client: Client, **asked: Any) -> list[list[str]]:
    columns = shown(client, **asked).context["columns"]
    return [[f"{each.time} {each.schedule.agent.name}" for each in c.lines] for c in columns]


@time_machine.travel(NOON, tick=False)
def test_seven_days_begin_with_today_and_lead_to_the_schedules(boss: Client, fleet: Fleet):
    schedule = fleet.schedule(fleet.agent(), "0 9 * * 1-5", next_fire_at=at(hours=21))
    assert lines(boss) == [[], *[["09:00 reporter"]] * 4, [], []]
    assert f'href="{page_of(schedule)}"' in shown(boss).content.decode()


@time_machine.travel(NOON, tick=False)
def test_what_fires_every_minute_is_a_band_and_not_ten_thousand_entries(boss: Client, fleet: Fleet):
    fleet.schedule(fleet.agent(), "* * * * *", text="every minute of <it>")
    assert lines(boss)[:2] == [["12:00 to 23:59 reporter"], ["00:00 to 23:59 reporter"]]
    page = shown(boss).content.decode()
    assert page.count("dv-often") == 7
    assert "every minute of &lt;it&gt;" in page


@time_machine.travel(NOON, tick=False)
def test_an_interval_that_counts_from_the_end_of_runs_is_only_about(boss: Client, fleet: Fleet):
    fleet.schedule(fleet.agent(), "12h", interval_seconds=43_200)
    page = shown(boss).content.decode()
    assert "~</abbr>12:00" in page and "estimated" in page


@time_machine.travel(NOON, tick=False)
def test_one_agents_schedules_are_shown_alone_and_later_weeks_too(boss: Client, fleet: Fleet):
    one, two = fleet.agent("one"), fleet.agent("two")
    fleet.schedule(one, "0 9 * * *", next_fire_at=at(hours=21))
    fleet.schedule(two, "0 10 20 * *", next_fire_at=at(days=17, hours=22))
    assert lines(boss, agent=one.pk)[1] == ["09:00 one"]
    assert lines(boss, agent=two.pk) == [[]] * 7
    assert lines(boss, agent=two.pk, week=2)[4] == ["10:00 two"]
    assert lines(boss, agent="x", week="-1")[1] == ["09:00 one"]
    assert shown(boss, week="99").context["week"] == subject.WEEKS - 1


@time_machine.travel(NOON, tick=False)
def test_fires_of_a_paused_agent_are_grey_and_have_a_reason(boss: Client, fleet: Fleet):
    fleet.schedule(fleet.agent(paused_at=NOON), "0 9 * * *", next_fire_at=at(hours=21))
    page = shown(boss).content.decode()
    assert "dv-idle" in page and "the agent is paused" in page


def test_an_empty_calendar_says_why(boss: Client, fleet: Fleet):
    assert "are defined in SKILL.md files" in shown(boss).content.decode()
    fleet.schedule(fleet.agent(), state="paused")
    assert "1 schedule is paused" in shown(boss).content.decode()


@time_machine.travel(datetime(2026, 3, 27, 12, tzinfo=UTC), tick=False)
def test_the_day_on_which_the_clocks_change_says_so(boss: Client, fleet: Fleet, settings: Any):
    settings.TIME_ZONE = "Europe/Berlin"
    changes = [column.change for column in shown(boss).context["columns"]]
    assert changes == ["", "", "Clocks go forward", "", "", "", ""]


@time_machine.travel(NOON, tick=False)
def test_many_schedules_need_no_more_queries_and_no_larger_page(
    boss: Client, fleet: Fleet, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(subject, "MOST_SCHEDULES", 40)
    agent = fleet.agent()
    fleet.schedule(agent, "0 9 * * *", name="first")
    shown(boss)  # stores when the session was used
    with CaptureQueriesContext(connection) as few:
        shown(boss)
    for number in range(45):
        fleet.schedule(agent, f"{number} 9 * * *", name=f"s{number}", next_fire_at=at(hours=21))
    with CaptureQueriesContext(connection) as many:
        page = shown(boss)
    assert len(many) == len(few)
    assert page.context["too_many"] == 40
    assert all(len(column.lines) <= subject.MOST_A_DAY for column in page.context["columns"])
    assert "and 10 more" in page.content.decode()


def test_the_calendar_requires_the_permission_to_see_schedules(visitor: Client, client: Client):
    shown(visitor)
    assert client.get(CALENDAR)["Location"].startswith("/admin/login/")
