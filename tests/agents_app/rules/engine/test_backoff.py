"""A rule that fails fires less and less often, until it succeeds or its agents change."""

from datetime import timedelta
from itertools import pairwise

import pytest

from agents_app.models import Agent, RuleBook, Run, Tenant, WorkItem
from agents_app.rules.engine import tick
from agents_app.rules.engine.commands import run_command
from agents_app.rules.engine.decide import COMMAND_GRACE_SECONDS, COMMAND_SECONDS
from agents_app.rules.engine.listing import indicator
from agents_app.rules.engine.outcome import ActionOutcome
from agents_app.runners.base import Outcome as Ended
from agents_app.runners.base import RunControl, RunSpec
from agents_app.runners.process import ProcessRunner
from agents_app.runs import control
from tests.agents_app.fleet import Fleet
from tests.agents_app.rules.engine.rules_clock import Rules, at, book, event_details, row, status

FAILS = ActionOutcome(problem="no")


def _gaps(rules: Rules) -> list[int]:
    moments = [moment for _, moment in rules.fired]
    return [int((b - a).total_seconds()) for a, b in pairwise(moments)]


def test_failures_in_a_row_are_a_minute_apart_then_two_then_four_and_at_most_an_hour(rules: Rules):
    rules.save("[a] every 1m => resume all")
    rules.outcome = FAILS
    rules.ticks(at("08:00"), at("11:10"), every=60)
    assert _gaps(rules)[:8] == [60, 120, 240, 480, 960, 1920, 3600, 3600]
    assert row("a").status == "backoff"
    assert row("a").failures == len(rules.fired)


def test_each_failure_is_in_the_journal_with_the_end_of_the_backoff(rules: Rules):
    rules.save("[a] every 1m => resume all")
    rules.outcome = FAILS
    rules.ticks(at("12:00"), at("12:02"))
    assert event_details("rule.failed") == [
        "rule a: no; next attempt after 12:02:00 UTC",
        "rule a: no (2 times in a row); next attempt after 12:04:00 UTC",
    ]


def test_a_command_has_five_minutes_and_ten_seconds_to_end_and_then_has_failed(
    rules: Rules, monkeypatch: pytest.MonkeyPatch
):
    """The runner is scripted to return what it returns after a timeout."""
    allowed: list[tuple[float, float]] = []

    def takes_too_long(_: object, spec: RunSpec, _control: object, _sink: object) -> Ended:
        allowed.append((spec.timeout_seconds, spec.grace_seconds))
        return Ended("timed_out", exit_code=-15, error="timed out after 300 s")

    monkeypatch.setattr(ProcessRunner, "run", takes_too_long)
    rules.save('[a] every 1m => run "sleep 1000"')
    rules.holding = True
    rules.ticks(at("12:00"), at("12:01"))
    action, tenant_id = rules.held[-1]
    outcome = run_command(action, tenant_id, rules.project, RunControl())
    rules.end(outcome, at("12:06"))
    assert (COMMAND_SECONDS, COMMAND_GRACE_SECONDS) == (300, 10)
    assert allowed == [(300, 10)]
    assert status("a") == ("backoff", "timed out after 300 s")
    assert (row("a").failures, row("a").backoff_until) == (1, at("12:07"))


def test_a_success_after_failures_goes_back_to_the_normal_trigger(rules: Rules):
    rules.save("[a] every 1m => resume all")
    rules.outcome = FAILS
    rules.ticks(at("12:00"), at("12:04"))
    assert row("a").failures == 3
    rules.outcome = None
    rules.ticks(at("12:04:10"), at("12:08"))
    assert (row("a").failures, row("a").backoff_until, row("a").status) == (0, None, "ok")
    assert row("a").next_due_at == at("12:09")


def test_a_cron_rule_that_failed_waits_for_its_own_next_minute(rules: Rules):
    rules.save("[a] at */5 * * * * => resume all")
    rules.outcome = FAILS
    rules.ticks(at("12:01"), at("13:20"), every=60)
    assert all(moment.minute % 5 == 0 and moment.second == 0 for _, moment in rules.fired)
    assert _gaps(rules)[:5] == [300, 300, 300, 600, 1200]


def test_a_change_of_the_agent_ends_the_backoff_of_a_rule(rules: Rules, fleet: Fleet):
    fleet.agent("forge", scale=0)
    rules.save("[a] every 1m => summon forge")
    rules.ticks(at("12:00"), at("12:08"))
    assert row("a").failures == 4  # at 12:01, :02, :04 and :08
    assert "give it a scale above 0" in row("a").reason
    control.scale_agent(Agent.objects.get(), 1, "ann", at("12:08"))
    assert rules.tick(at("12:08:10")) == []
    assert (row("a").failures, row("a").status) == (0, "waiting")
    assert row("a").next_due_at == at("12:09")
    assert rules.tick(at("12:08:20")) == []
    assert rules.tick(at("12:09")) == ["a"]
    assert status("a") == ("ok", "summoned: forge")


def test_an_interval_that_is_over_when_the_agent_changes_fires_at_once(rules: Rules, fleet: Fleet):
    agent = fleet.agent("forge", scale=0)
    rules.save("[a] every 1m => summon forge")
    rules.ticks(at("12:00"), at("12:10"))
    control.pause_agent(agent, "ann", at("12:10"))
    assert rules.tick(at("12:10:10")) == ["a"]
    assert row("a").failures == 1


@pytest.mark.parametrize(
    "line",
    [
        '[a] every 1m if not alive(forge) => run "false"',
        "[a] every 1m if not alive(forge) => summon forge",
    ],
)
def test_a_run_that_the_rule_did_not_start_ends_its_backoff(rules: Rules, fleet: Fleet, line: str):
    """A person has started the agent: its later absence is a new reason to act."""
    agent = fleet.agent("forge")
    rules.save(line)
    rules.outcome = FAILS
    rules.ticks(at("12:00"), at("12:08"))
    assert row("a").failures == 4
    item = fleet.enqueue(agent, at("12:08"))
    rules.tick(at("12:08:10"))
    assert (row("a").failures, row("a").backoff_until) == (0, None)
    assert row("a").reason == "its agents have changed since it failed"
    assert rules.ticks(at("12:08:20"), at("12:09:30")) == []
    assert status("a") == ("skip", "forge is alive")
    fleet.finish(fleet.start(item, at("12:09")), now=at("12:09:30"))
    assert rules.ticks(at("12:09:40"), at("12:10")) == [("a", at("12:10"))]


def test_a_change_of_other_agents_does_not_end_the_backoff(rules: Rules, fleet: Fleet):
    fleet.agent("forge", scale=0)
    rules.save("[a] every 1m => summon forge")
    rules.ticks(at("12:00"), at("12:04"))
    fleet.enqueue(fleet.agent("beacon"))
    rules.tick(at("12:04:10"))
    assert row("a").failures == 3


def test_a_backoff_lasts_across_a_restart(rules: Rules):
    rules.save("[a] every 1m => resume all")
    rules.outcome = FAILS
    rules.ticks(at("12:00"), at("12:16"))
    until = row("a").backoff_until
    assert until == at("12:32")
    control.start_scheduler(at("12:17"))
    rules.tick(at("12:17:10"))
    assert (row("a").failures, row("a").next_due_at) == (5, until)


def test_a_clock_that_was_set_back_by_a_day_does_not_make_the_backoff_longer(rules: Rules):
    rules.save("[a] every 1m => resume all")
    rules.outcome = FAILS
    rules.ticks(at("12:00", day=1), at("12:03", day=1))
    assert row("a").failures == 2
    rules.tick(at("12:00"))
    assert (row("a").next_due_at, row("a").backoff_until) == (at("12:02"), at("12:02"))


def test_an_agent_whose_summoned_runs_fail_is_summoned_less_and_less_often(
    rules: Rules, fleet: Fleet
):
    agent = fleet.agent("forge")
    rules.save("[a] every 1m if not alive(forge) => summon forge")

    def tick_and_finish(start: str, end: str, state: str) -> None:
        now = at(start)
        while now <= at(end):
            for _ in rules.tick(now):
                fleet.finish(fleet.start(WorkItem.objects.latest("pk"), now), state, now)
            now += timedelta(seconds=10)

    tick_and_finish("12:00", "12:09", "failed")
    assert _gaps(rules) == [60, 60, 120, 240]
    failed = Run.objects.filter(agent=agent).order_by("-pk")[1]
    assert status("a") == (
        "backoff",
        f"run {failed.pk}, which this rule summoned before, ended failed",
    )
    # This run succeeds, so the next summon is no failure.
    tick_and_finish("12:09:10", "12:32:50", "succeeded")
    assert row("a").failures == 5
    tick_and_finish("12:33", "12:33", "succeeded")
    assert (row("a").failures, row("a").status) == (0, "ok")


def test_a_run_that_lived_for_a_while_does_not_end_the_backoff_of_its_rule(
    rules: Rules, fleet: Fleet
):
    """The rule itself started the run: only changes from outside end the backoff."""
    fleet.agent("forge")
    rules.save("[a] every 1m if not alive(forge) => summon forge")
    now, ends, running = at("12:00"), at("12:00"), []
    while now <= at("12:20"):
        if running and now >= ends:
            fleet.finish(running.pop(), "failed", now)
        for _ in rules.tick(now):
            running = [fleet.start(WorkItem.objects.latest("pk"), now)]
            ends = now + timedelta(seconds=25)
        now += timedelta(seconds=10)
    assert _gaps(rules) == [60, 60, 120, 240, 480]
    assert row("a").failures == 5


def test_a_run_started_by_a_message_does_not_end_the_backoff_of_its_rule(
    rules: Rules, fleet: Fleet
):
    fleet.agent("forge")
    rules.save('[a] every 1m => msg forge,ghost "hello"')
    rules.ticks(at("12:00"), at("12:01"))
    assert row("a").failures == 1
    assert Run.objects.count() == 1
    rules.tick(at("12:01:10"))
    assert row("a").failures == 1


# --- crashes --------------------------------------------------------------------------------


@pytest.fixture
def broken(monkeypatch: pytest.MonkeyPatch) -> None:
    def breaks(*_: object) -> None:
        raise ZeroDivisionError("by zero")

    monkeypatch.setattr(tick, "decide", breaks)


@pytest.mark.usefixtures("broken")
def test_an_evaluation_that_crashes_five_times_in_a_row_is_disabled(rules: Rules):
    rules.save("[a] every 10s => resume all")
    rules.ticks(at("12:00"), at("12:00:30"))
    assert (book().crashes, book().disabled_at) == (4, None)
    rules.tick(at("12:00:40"))
    assert book().disabled_at == at("12:00:40")
    assert event_details("rules.disabled") == [
        "after 5 failed evaluations in a row: ZeroDivisionError: by zero"
    ]
    assert "is not evaluated: ZeroDivisionError: by zero" in book().problems[0]
    rules.ticks(at("12:00:50"), at("12:02"))
    assert book().crashes == 5


def test_an_edit_of_the_file_or_a_start_of_drover_enables_the_evaluation_again(
    rules: Rules, broken: None, monkeypatch: pytest.MonkeyPatch
):
    rules.save("[a] every 10s => resume all")
    rules.ticks(at("12:00"), at("12:01"))
    monkeypatch.undo()
    assert rules.ticks(at("12:01:10"), at("12:02")) == []
    rules.save("[a] every 10s => resume all", "# fixed")
    rules.tick(at("12:02:10"))
    assert (book().crashes, book().disabled_at, book().problems) == (0, None, [])
    RuleBook.objects.update(disabled_at=at("12:03"), crash_fingerprint=book().fingerprint)
    assert rules.ticks(at("12:03:10"), at("12:04")) == []
    control.start_scheduler(at("12:05"))
    rules.ticks(at("12:05:10"), at("12:05:20"))
    assert book().disabled_at is None
    assert rules.fired != []


def test_an_evaluation_that_cannot_read_its_project_is_shown_as_disabled(rules: Rules):
    """Without a scripted error: a time zone that does not exist was stored by other means."""
    rules.save("[a] every 10s => resume all")
    assert rules.ticks(at("12:00"), at("12:00:10")) == [("a", at("12:00:10"))]
    Tenant.objects.update(settings={"timezone": "Mars/Olympus"})
    for crashes, second in enumerate(range(20, 60, 10), 1):
        rules.tick(at(f"12:00:{second}"))
        assert (book().crashes, indicator("default").text) == (crashes, "SCH 1")
    rules.tick(at("12:01"))
    shown = indicator("default")
    assert (shown.text, shown.tone) == ("SCH X", "bad")
    assert shown.meaning == (
        "Scheduler rules: disabled, because their evaluation failed repeatedly"
    )
    (detail,) = event_details("rules.disabled")
    assert "Mars/Olympus" in detail
    Tenant.objects.update(settings={"timezone": "UTC"})
    assert rules.ticks(at("12:01:10"), at("12:02")) == []
    rules.save("[a] every 10s => resume all", "# saved again")
    rules.tick(at("12:02:10"))
    assert indicator("default").text == "SCH 1"


@pytest.mark.usefixtures("broken")
def test_an_edit_that_crashes_as_well_has_five_attempts_of_its_own(rules: Rules):
    rules.save("[a] every 10s => resume all")
    rules.ticks(at("12:00"), at("12:01"))
    rules.save("[a] every 20s => resume all")
    rules.tick(at("12:01:10"))
    assert (book().crashes, book().disabled_at) == (1, None)
    rules.ticks(at("12:01:20"), at("12:02"))
    assert book().disabled_at is not None
