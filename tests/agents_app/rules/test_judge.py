"""Conditions against one snapshot of the fleet, and what messages say of it."""

from datetime import UTC, datetime

import pytest

from agents_app.rules.engine.judge import Judgement, fill, judge
from agents_app.rules.language.parse import parse_conditions
from agents_app.rules.language.rule import AgentState, Snapshot

FLEET = Snapshot(
    at=datetime(2026, 3, 1, 12, 0, 30, 999, tzinfo=UTC),
    crew="default",
    agents={
        "forge": AgentState(idle_seconds=700, queued=3, failed={3600: 2}, spent_percent=80.4),
        "beacon": AgentState(idle_seconds=30),
        "drift": AgentState(queued=1, spent_percent=0),
    },
)
NOBODY = Snapshot(at=FLEET.at, crew="default", agents={"drift": AgentState()})


def judged(text: str, fleet: Snapshot = FLEET) -> Judgement:
    return judge(parse_conditions(text), fleet)


@pytest.mark.parametrize(
    ("text", "because"),
    [
        ("alive(forge)", "forge is alive"),
        ("alive(forge,beacon)", "forge and beacon are alive"),
        ("not alive(drift)", "drift is not alive"),
        ("not alive(forge,drift,ghost)", "drift and ghost are not alive"),
        ("idle(any) > 29s", "idle: forge for 11m 40s, beacon for 30s"),
        ("idle(any) > 10m", "idle: forge for 11m 40s"),
        ("idle(all) > 29s", "idle: forge for 11m 40s, beacon for 30s"),
        ("idle(beacon,forge) > 29s", "idle: beacon for 30s, forge for 11m 40s"),
        ("queue(forge) > 2", "3 waiting for forge"),
        ("failed(forge) > 1 in 1h", "2 failed runs of forge within 1h"),
        ("budget(forge) > 80%", "forge has used 80% of its budget"),
        ("alive(forge) and queue(drift) > 0", "forge is alive, and 1 waiting for drift"),
    ],
)
def test_a_true_condition_says_why(text: str, because: str):
    judgement = judged(text)
    assert (judgement.true, judgement.because) == (True, because)


@pytest.mark.parametrize(
    ("text", "because"),
    [
        ("alive(forge,drift)", "drift is not alive"),
        ("alive(ghost)", "ghost is not alive"),
        ("not alive(forge,beacon)", "forge and beacon are alive"),
        (
            "idle(any) > 700s",
            "the longest idle is forge, for 11m 40s; more than 700s is asked for",
        ),
        ("idle(all) > 30s", "beacon has been idle for 30s; more than 30s is asked for"),
        ("idle(drift) > 1s", "drift is not alive"),
        ("idle(forge,ghost) > 1m", "ghost is not alive"),
        ("queue(forge) > 3", "3 waiting for forge"),
        ("queue(ghost) > 0", "0 waiting for ghost"),
        ("failed(forge) > 2 in 1h", "2 failed runs of forge within 1h"),
        ("failed(beacon) > 0 in 1h", "0 failed runs of beacon within 1h"),
        ("budget(drift) > 0%", "drift has used 0% of its budget"),
        ("budget(beacon) > 0%", "beacon has no budget"),
        ("alive(forge) and queue(drift) > 1", "1 waiting for drift"),
    ],
)
def test_a_false_condition_says_why(text: str, because: str):
    judgement = judged(text)
    assert (judgement.true, judgement.because) == (False, because)
    assert not judgement.idle


@pytest.mark.parametrize("who", ["all", "any", "drift"])
def test_where_nobody_is_alive_nobody_is_idle(who: str):
    assert not judged(f"idle({who}) > 1s", NOBODY).true


def test_those_that_were_found_idle_can_be_named():
    judgement = judged("alive(forge) and idle(any) > 10s")
    assert judgement.idle == ("forge", "beacon")
    assert judgement.longest_idle_seconds == 700
    assert not judged("idle(any) > 10s and alive(drift)").idle


def test_no_condition_is_always_true():
    assert judge((), NOBODY).true


def test_a_message_is_filled_in():
    judgement = judged("idle(all) > 1s")
    text = "{crew} {timestamp}: {idle} for {idle_duration} {unknown} {} {crew"
    assert fill(text, FLEET, judgement) == (
        "default 2026-03-01T12:00:30+00:00: forge,beacon for 11m 40s {unknown} {} {crew"
    )


def test_what_is_filled_in_is_not_read_again():
    crew = Snapshot(at=FLEET.at, crew="{idle}", agents={})
    assert fill("{crew}", crew, judged("idle(all) > 1s")) == "{idle}"
