"""A rule that fails is tried less and less often, until it succeeds or its agents change."""

from datetime import timedelta
from itertools import pairwise

import pytest

from agents_app.models import Agent, RuleBook, Run, WorkItem
from agents_app.rules.engine import evaluate_rules as looking
from agents_app.rules.engine.commands import run_command
from agents_app.rules.engine.decide import COMMAND_GRACE_SECONDS, COMMAND_SECONDS
from agents_app.rules.engine.outcome import ActionOutcome
from agents_app.runners.base import Outcome as Ended
from agents_app.runners.base import RunControl, RunSpec
from agents_app.runners.process import ProcessRunner
from agents_app.runs import control
from tests.agents_app.fleet import Fleet
from tests.agents_app.rules.ruling import Rules, at, book, row, status, told

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


def test_each_failure_is_in_the_journal_with_the_time_until_which_it_waits(rules: Rules):
    rules.save("[a] every 1m => resume all")
    rules.outcome = FAILS
    rules.ticks(at("12:00"), at("12:02"))
    assert told("rule.failed") == [
        "rule a: no; not again before 12:02:00 UTC",
        "rule a: no (2 times in a row); not again before 12:04:00 UTC",
    ]


def test_a_command_has_five_minutes_and_ten_seconds_to_end_and_then_has_failed(
    rules: Rules, monkeypatch: pytest.MonkeyPatch
):
    """By a clock of the test: the runner answers as it does when the time is over."""
    allowed: list[tuple[float, float]] = []

    def takes_too_long(_: object, spec: RunSpec, _control: object, _sink: object) -> Ended:
        allowed.append((spec.timeout_seconds, spec.grace_seconds))
        return Ended("timed_out", exit_code=-15, error="timed out after 300 s")

    monkeypatch.setattr(ProcessRunner, "run", takes_too_long)
    rules.save('[a] every 1m => run "sleep 1000"')
    rules.holding = True
    rules.ticks(at("12:00"), at("12:01"))
    errand, tenant_id = rules.held[-1]
    outcome = run_command(errand, tenant_id, rules.project, RunControl())
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


def test_a_change_of_its_agent_gives_a_rule_another_chance(rules: Rules, fleet: Fleet):
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


def test_what_happens_to_other_agents_changes_nothing(rules: Rules, fleet: Fleet):
    fleet.agent("forge", scale=0)
    rules.save("[a] every 1m => summon forge")
    rules.ticks(at("12:00"), at("12:04"))
    fleet.ask(fleet.agent("beacon"))
    rules.tick(at("12:04:10"))
    assert row("a").failures == 3


def test_a_backoff_lasts_across_a_restart(rules: Rules):
    rules.save("[a] every 1m => resume all")
    rules.outcome = FAILS
    rules.ticks(at("12:00"), at("12:16"))
    until = row("a").backoff_until
    assert until == at("12:32")
    control.begin(at("12:17"))
    rules.tick(at("12:17:10"))
    assert (row("a").failures, row("a").next_due_at) == (5, until)


def test_a_clock_that_was_set_back_by_a_day_does_not_make_the_backoff_longer(rules: Rules):
    rules.save("[a] every 1m => resume all")
    rules.outcome = FAILS
    rules.ticks(at("12:00", day=1), at("12:03", day=1))
    assert row("a").failures == 2
    rules.tick(at("12:00"))
    assert (row("a").next_due_at, row("a").backoff_until) == (at("12:02"), at("12:02"))


def test_an_agent_that_falls_over_whenever_it_is_summoned_is_summoned_less_and_less(
    rules: Rules, fleet: Fleet
):
    agent = fleet.agent("forge")
    rules.save("[a] every 1m if not alive(forge) => summon forge")

    def look(start: str, end: str, state: str) -> None:
        now = at(start)
        while now <= at(end):
            for _ in rules.tick(now):
                fleet.finish(fleet.start(WorkItem.objects.latest("pk"), now), state, now)
            now += timedelta(seconds=10)

    look("12:00", "12:09", "failed")
    assert _gaps(rules) == [60, 60, 120, 240]
    failed = Run.objects.filter(agent=agent).order_by("-pk")[1]
    assert status("a") == (
        "backoff",
        f"run {failed.pk}, which this rule had summoned before, ended failed",
    )
    # This one stays up, so the next finds nothing to complain about.
    look("12:09:10", "12:32:50", "succeeded")
    assert row("a").failures == 5
    look("12:33", "12:33", "succeeded")
    assert (row("a").failures, row("a").status) == (0, "ok")


def test_that_an_agent_lived_for_a_while_is_no_reason_to_summon_it_more_often(
    rules: Rules, fleet: Fleet
):
    """The rule itself made it alive: only what others change gives the rule another chance."""
    fleet.agent("forge")
    rules.save("[a] every 1m if not alive(forge) => summon forge")
    now, ends, going_on = at("12:00"), at("12:00"), []
    while now <= at("12:20"):
        if going_on and now >= ends:
            fleet.finish(going_on.pop(), "failed", now)
        for _ in rules.tick(now):
            going_on = [fleet.start(WorkItem.objects.latest("pk"), now)]
            ends = now + timedelta(seconds=25)
        now += timedelta(seconds=10)
    assert _gaps(rules) == [60, 60, 120, 240, 480]
    assert row("a").failures == 5


def test_that_a_message_woke_an_agent_is_no_reason_to_try_more_often(rules: Rules, fleet: Fleet):
    fleet.agent("forge")
    rules.save('[a] every 1m => msg forge,ghost "hello"')
    rules.ticks(at("12:00"), at("12:01"))
    assert row("a").failures == 1
    assert Run.objects.count() == 1
    rules.tick(at("12:01:10"))
    assert row("a").failures == 1


# --- looks that break -----------------------------------------------------------------------


@pytest.fixture
def broken(monkeypatch: pytest.MonkeyPatch) -> None:
    def breaks(*_: object) -> None:
        raise ZeroDivisionError("by zero")

    monkeypatch.setattr(looking, "decide", breaks)


@pytest.mark.usefixtures("broken")
def test_a_look_that_breaks_again_and_again_is_the_last_one(rules: Rules):
    rules.save("[a] every 10s => resume all")
    rules.ticks(at("12:00"), at("12:00:30"))
    assert (book().crashes, book().disabled_at) == (4, None)
    rules.tick(at("12:00:40"))
    assert book().disabled_at == at("12:00:40")
    assert told("rules.disabled") == [
        "after 5 looks in a row that broke: ZeroDivisionError: by zero"
    ]
    assert "is not obeyed: ZeroDivisionError: by zero" in book().problems[0]
    rules.ticks(at("12:00:50"), at("12:02"))
    assert book().crashes == 5


def test_an_edit_of_the_file_or_a_start_of_drover_switches_it_on_again(
    rules: Rules, broken: None, monkeypatch: pytest.MonkeyPatch
):
    rules.save("[a] every 10s => resume all")
    rules.ticks(at("12:00"), at("12:01"))
    monkeypatch.undo()
    assert rules.ticks(at("12:01:10"), at("12:02")) == []
    rules.save("[a] every 10s => resume all", "# mended")
    rules.tick(at("12:02:10"))
    assert (book().crashes, book().disabled_at, book().problems) == (0, None, [])
    RuleBook.objects.update(disabled_at=at("12:03"), crash_fingerprint=book().fingerprint)
    assert rules.ticks(at("12:03:10"), at("12:04")) == []
    control.begin(at("12:05"))
    rules.ticks(at("12:05:10"), at("12:05:20"))
    assert book().disabled_at is None
    assert rules.fired != []


@pytest.mark.usefixtures("broken")
def test_an_edit_that_breaks_it_as_well_is_given_five_looks_of_its_own(rules: Rules):
    rules.save("[a] every 10s => resume all")
    rules.ticks(at("12:00"), at("12:01"))
    rules.save("[a] every 20s => resume all")
    rules.tick(at("12:01:10"))
    assert (book().crashes, book().disabled_at) == (1, None)
    rules.ticks(at("12:01:20"), at("12:02"))
    assert book().disabled_at is not None
