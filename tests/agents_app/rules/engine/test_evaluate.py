"""Evaluation of conditions against a snapshot of the fleet, and templates of messages."""

from datetime import UTC, datetime

import pytest

from agents_app.rules.engine.evaluate import ConditionResult, evaluate_conditions, fill_template
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
NO_LIVE_AGENT = Snapshot(at=FLEET.at, crew="default", agents={"drift": AgentState()})


def evaluated(text: str, fleet: Snapshot = FLEET) -> ConditionResult:
    return evaluate_conditions(parse_conditions(text), fleet)


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("alive(forge)", "forge is alive"),
        ("alive(forge,beacon)", "forge and beacon are alive"),
        ("not alive(drift)", "drift is not alive"),
        ("not alive(forge,drift,ghost)", "drift and ghost are not alive"),
        ("idle(any) > 29s", "idle: forge for 11m 40s, beacon for 30s"),
        ("idle(any) > 10m", "idle: forge for 11m 40s"),
        ("idle(all) > 29s", "idle: forge for 11m 40s, beacon for 30s"),
        ("idle(beacon,forge) > 29s", "idle: beacon for 30s, forge for 11m 40s"),
        ("queue(forge) > 2", "3 queued for forge"),
        ("failed(forge) > 1 in 1h", "2 failed runs of forge within 1h"),
        ("budget(forge) > 80%", "forge has used 80% of its budget"),
        ("alive(forge) and queue(drift) > 0", "forge is alive, and 1 queued for drift"),
    ],
)
def test_a_condition_that_holds_has_a_reason(text: str, reason: str):
    result = evaluated(text)
    assert (result.holds, result.reason) == (True, reason)


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("alive(forge,drift)", "drift is not alive"),
        ("alive(ghost)", "ghost is not alive"),
        ("not alive(forge,beacon)", "forge and beacon are alive"),
        (
            "idle(any) > 700s",
            "the longest idle is forge, for 11m 40s; the rule asks for more than 700s",
        ),
        ("idle(all) > 30s", "beacon has been idle for 30s; the rule asks for more than 30s"),
        ("idle(drift) > 1s", "drift is not alive"),
        ("idle(forge,ghost) > 1m", "ghost is not alive"),
        ("queue(forge) > 3", "3 queued for forge"),
        ("queue(ghost) > 0", "0 queued for ghost"),
        ("failed(forge) > 2 in 1h", "2 failed runs of forge within 1h"),
        ("failed(beacon) > 0 in 1h", "0 failed runs of beacon within 1h"),
        ("budget(drift) > 0%", "drift has used 0% of its budget"),
        ("budget(beacon) > 0%", "beacon has no budget"),
        ("alive(forge) and queue(drift) > 1", "1 queued for drift"),
    ],
)
def test_a_condition_that_does_not_hold_has_a_reason(text: str, reason: str):
    result = evaluated(text)
    assert (result.holds, result.reason) == (False, reason)
    assert not result.idle


@pytest.mark.parametrize("target", ["all", "any", "drift"])
def test_idle_does_not_hold_without_a_live_agent(target: str):
    assert not evaluated(f"idle({target}) > 1s", NO_LIVE_AGENT).holds


def test_the_result_names_the_idle_agents():
    result = evaluated("alive(forge) and idle(any) > 10s")
    assert result.idle == ("forge", "beacon")
    assert result.longest_idle_seconds == 700
    assert not evaluated("idle(any) > 10s and alive(drift)").idle


def test_no_condition_is_always_true():
    assert evaluate_conditions((), NO_LIVE_AGENT).holds


def test_a_message_is_filled_in():
    result = evaluated("idle(all) > 1s")
    text = "{crew} {timestamp}: {idle} for {idle_duration} {unknown} {} {crew"
    assert fill_template(text, FLEET, result) == (
        "default 2026-03-01T12:00:30+00:00: forge,beacon for 11m 40s {unknown} {} {crew"
    )


def test_a_filled_in_value_is_not_taken_for_a_template():
    crew = Snapshot(at=FLEET.at, crew="{idle}", agents={})
    assert fill_template("{crew}", crew, evaluated("idle(all) > 1s")) == "{idle}"
