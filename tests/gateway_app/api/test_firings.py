"""/v1/firings and /v1/schedules/{id}/firings."""

from datetime import timedelta

import pytest

from agents_app.models import Schedule
from agents_app.schedules import due, firings
from tests.agents_app.fleet import NOON, Fleet, at
from tests.gateway_app.api.calling import Api


@pytest.fixture
def schedule(fleet: Fleet) -> Schedule:
    """A run started at noon, and two firings were skipped because of it."""
    schedule = fleet.schedule(fleet.agent(), "* * * * *")
    for minute in range(3):
        due.claim_due_schedules(at(minutes=minute))
        firings.decide_firings(at(minutes=minute))
    return schedule


def test_the_firings_of_a_schedule_say_what_became_of_each(
    fleet: Fleet, reader: Api, schedule: Schedule
):
    other = fleet.schedule(fleet.agent("other"), name="other")
    fleet.fire(other)
    reply = reader.get(f"/schedules/{schedule.pk}/firings")
    assert reply.status == 200
    shown = reply.json["firings"]
    times = [(NOON + timedelta(minutes=minute)).timestamp() for minute in (2, 1, 0)]
    assert [each["due_at"] for each in shown] == times
    assert [(each["outcome"], each["reason"]) for each in shown] == [
        *[("skipped", "already_running")] * 2,
        ("started", ""),
    ]
    item = schedule.agent.work_items.get()
    started = shown[-1]
    assert (started["work_item_id"], started["run_id"]) == (item.pk, item.runs.get().pk)
    assert (started["run_state"], started["text"]) == ("pending", "a slot was free")
    assert (started["agent"], started["schedule"]) == ("reporter", "main")
    assert (shown[0]["run_id"], shown[0]["text"]) == (
        None,
        "the schedule's earlier work was not finished",
    )


def test_all_firings_are_listed_newest_first_and_filtered(
    fleet: Fleet, reader: Api, schedule: Schedule
):
    other = fleet.schedule(fleet.agent("other"), name="hourly", next_fire_at=at(hours=1))
    fleet.fire(other, at(hours=1))

    def names(**query: object) -> list[str]:
        return [each["schedule"] for each in reader.get("/firings", **query).json["firings"]]

    assert names() == ["hourly", "main", "main", "main"]
    assert names(agent="reporter", outcome="skipped") == ["main", "main"]
    assert names(since=at(minutes=2).timestamp()) == ["hourly", "main"]
    assert names(outcome="undecided") == []
    assert reader.get("/firings", outcome="lost").status == 400


def test_pages_of_firings_together_are_all_firings(reader: Api, schedule: Schedule):
    for path in ("/firings", f"/schedules/{schedule.pk}/firings"):
        found, cursor = [], {}
        while True:
            page = reader.get(path, limit=1, **cursor).json
            found += [each["id"] for each in page["firings"]]
            if page["next_cursor"] is None:
                break
            cursor = {"cursor": page["next_cursor"]}
        assert found == sorted(schedule.firings.values_list("pk", flat=True), reverse=True)
        assert reader.get(path, cursor="W10").status == 400
