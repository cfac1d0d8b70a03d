"""Charts of the overview: positions of bars, marks and curves, and their number."""

from datetime import datetime, timedelta

import pytest

from agents_app.admin.line_charts import HEIGHT, chart
from agents_app.admin.timeline import (
    LEAST_PERCENT,
    MOST_LANES,
    PIECES,
    Live,
    TimelineWindow,
    busiest,
    lanes,
    marks,
    window_of,
)
from agents_app.reports.activity import RunGroup
from tests.agents_app.fleet import NOON, at

HOUR = TimelineWindow(1, NOON)


def pile(
    agent_id: int = 1, state: str = "succeeded", count: int = 1, **times: datetime
) -> RunGroup:
    began, ended = times.get("began", at(minutes=-30)), times.get("ended", at(minutes=-15))
    return RunGroup(agent_id, state, count, began, ended, 7, 0.0)


def bars_of(*piles: RunGroup, live: tuple[Live, ...] = (), window: TimelineWindow = HOUR):
    runs, _ = busiest(piles, live)
    (lane,) = lanes(piles, live, {1: "reporter"}, runs, window)
    return lane.bars


# --- bars -----------------------------------------------------------------------------------


def test_a_bar_lies_where_its_run_was():
    (bar,) = bars_of(pile())
    assert (bar.left, bar.width, bar.state) == (50, 25, "succeeded")


def test_a_bar_says_in_words_what_it_shows_and_leads_to_the_run():
    (bar,) = bars_of(pile(state="timed_out"))
    assert bar.label == "reporter: run 7 timed out, started 11:30:00, took 15 min 00 s"
    assert bar.url == "/admin/runs/7/change/"


def test_runs_that_share_a_bar_are_counted_and_lead_to_their_list():
    (bar,) = bars_of(pile(count=14))
    assert bar.label == "reporter: 14 runs succeeded, from 11:30:00 to 11:45:00"
    assert "agent__id__exact=1&state__exact=succeeded&finished_at__gte=2026" in bar.url


def test_a_running_bar_reaches_until_now_and_grows():
    live = (Live(1, 9, "running", at(minutes=-6)),)
    (now,) = bars_of(live=live)
    (later,) = bars_of(live=live, window=TimelineWindow(1, at(minutes=6)))
    assert (now.left, now.width) == (90, 10)
    assert (later.left, later.width) == (80, 20)
    assert now.key == later.key
    assert now.label == "reporter: run 9 running since 11:54:00"


def test_what_began_before_the_window_is_cut_off_at_its_edge():
    (bar,) = bars_of(pile(began=at(hours=-5), ended=at(minutes=-30)))
    assert (bar.left, bar.width) == (0, 50)


def test_the_shortest_run_can_be_seen_and_stays_inside():
    (bar,) = bars_of(pile(began=NOON, ended=NOON))
    assert (bar.left, bar.width) == (100 - LEAST_PERCENT, LEAST_PERCENT)


def test_failures_lie_above_successes():
    piles = [pile(state=state) for state in ("failed", "succeeded", "stopped")]
    assert [bar.state for bar in bars_of(*piles)] == ["succeeded", "stopped", "failed"]


def test_every_state_of_a_run_has_its_place():
    from agents_app.models import Run

    for state in Run.State.values:
        assert bars_of(pile(state=state))


# --- lanes ----------------------------------------------------------------------------------


def test_of_many_agents_the_busiest_have_lanes_in_the_order_of_their_names():
    number = MOST_LANES + 3
    names = {key: f"agent-{key:02}" for key in range(number)}
    piles = [pile(key, count=key + 1) for key in names]
    runs, left_out = busiest(piles, [])
    shown = lanes(piles, [], names, runs, HOUR)
    assert left_out == 3
    assert [lane.name for lane in shown] == [names[key] for key in range(3, number)]
    assert shown[0].label == "agent-03: 4 runs"


def test_an_agent_that_is_gone_has_no_lane():
    assert lanes([pile(2)], [], {1: "reporter"}, {2: 1}, HOUR) == []


# --- the axis -------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("hours", "first", "number"), [("1", "11:10", 6), ("6", "07:00", 6), ("24", "16:00", 6)]
)
def test_marks_stand_at_round_times(hours: str, first: str, number: int):
    shown = marks(window_of(hours, NOON))
    assert shown[0].text == first
    assert len(shown) == number
    assert shown[-1].left == 100


@pytest.mark.parametrize("written", [None, "", "0", "2", "-1", "1e9", "one", "01"])
def test_an_unknown_number_of_hours_is_one(written: str | None):
    assert window_of(written, NOON).hours == 1


# --- curves ---------------------------------------------------------------------------------


def test_a_curve_has_a_point_for_each_piece_of_time_and_loses_no_peak():
    points = [(NOON - timedelta(seconds=second), float(second == 1234)) for second in range(3600)]
    drawn = chart("Queue", points, HOUR)
    assert len(drawn.line.split()) == PIECES
    assert (drawn.latest, drawn.bound) == ("0", "max 1")
    assert any(point.endswith(",0.0") for point in drawn.line.split())
    assert drawn.label == "Queue: now 0, max 1"


def test_a_curve_ends_at_its_top():
    drawn = chart("Processor", [(NOON, 25.0)], HOUR, unit="%", top=100)
    assert drawn.line == f"600.0,{HEIGHT * 0.75}"
    assert drawn.latest == "25 %"


def test_a_curve_of_what_may_run_out_keeps_the_lowest():
    points = [(at(-2), 9.0), (at(-1), 4.0), (NOON, 6.0)]
    drawn = chart("Disk free", points, HOUR, unit="GB", lowest=True)
    assert (drawn.latest, drawn.bound) == ("4 GB", "min 4 GB")


def test_a_curve_of_nothing_is_empty():
    outside = [(at(hours=-2), 5.0), (at(hours=1), 5.0)]
    assert chart("Queue", outside, HOUR).line == ""
    assert chart("Queue", [(NOON, 0.0)], HOUR).line == f"600.0,{float(HEIGHT)}"
