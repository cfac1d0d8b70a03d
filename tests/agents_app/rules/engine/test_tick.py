"""When rules fire: once, on time, and never to make up for missed ticks."""

from datetime import timedelta

import pytest

from agents_app.models import RuleState, Run, Tenant
from agents_app.rules.engine import tick
from agents_app.rules.engine.decide import Decision, Evaluation, RuleColumns, decide
from agents_app.rules.engine.outcome import ActionOutcome
from agents_app.rules.engine.perform import perform
from agents_app.rules.language.rule import Rule
from agents_app.rules.language.source import FILE_NAME
from agents_app.runs import control
from tests.agents_app.fleet import Fleet, running
from tests.agents_app.rules.engine.rules_clock import Rules, at, row, status


def test_the_first_interval_waits_one_full_period(rules: Rules):
    rules.save("[a] every 5m => resume all")
    assert rules.ticks(at("12:00"), at("12:05:10")) == [("a", at("12:05"))]


def test_an_interval_is_counted_from_the_start_of_drover(rules: Rules):
    rules.save("[a] every 5m => resume all")
    rules.ticks(at("12:00"), at("12:04:00"))
    control.start_scheduler(at("12:04:02"))
    assert rules.ticks(at("12:04:10"), at("12:09:10")) == [("a", at("12:09:10"))]


def test_a_late_tick_fires_at_once_and_keeps_the_phase_of_the_interval(rules: Rules):
    rules.save("[a] every 5m => resume all")
    fired = rules.ticks(at("12:00:03"), at("12:16"))
    assert [moment for _, moment in fired] == [at("12:05:03"), at("12:10:03"), at("12:15:03")]
    rules.tick(at("12:20:00"))  # more than a minute without a tick: Drover was down
    assert row("a").next_due_at == at("12:25")


def test_every_trigger_fires_within_ten_seconds_of_its_time(rules: Rules):
    rules.save("[a] every 7m => resume all", "[b] at */3 * * * * => resume all")
    due = {"a": [], "b": []}
    for name, moment in rules.ticks(at("12:00:04"), at("12:22")):
        due[name].append(moment)
    assert (len(due["a"]), len(due["b"])) == (3, 7)
    assert all((moment - at("12:00")).seconds % 180 < 10 for moment in due["b"])
    assert all((moment - at("12:00:04")).seconds % 420 < 10 for moment in due["a"])


def test_a_cron_rule_fires_once_in_its_minute(rules: Rules):
    rules.save("[a] at 30 14 * * * => resume all")
    assert rules.ticks(at("14:29:00"), at("14:31:30")) == [("a", at("14:30"))]
    assert row("a").next_due_at == at("14:30", day=1)


def test_an_interval_that_was_due_while_drover_was_down_is_not_made_up_for(rules: Rules):
    rules.save("[a] every 5m => resume all")
    rules.ticks(at("12:00"), at("12:04"))
    assert rules.tick(at("13:01")) == []
    assert row("a").next_due_at == at("13:06")
    assert rules.ticks(at("13:01:10"), at("13:06:10")) == [("a", at("13:06"))]


def test_a_missed_midnight_is_not_made_up_for(rules: Rules):
    rules.save("[a] at 0 0 * * * => resume all")
    rules.ticks(at("23:49"), at("23:50"))
    assert rules.ticks(at("00:20", day=1), at("00:30", day=1)) == []
    assert row("a").next_due_at == at("00:00", day=2)


def test_after_the_clock_was_set_back_an_interval_is_counted_from_the_new_time(rules: Rules):
    rules.save("[a] every 5m => resume all")
    rules.tick(at("14:00"))
    rules.tick(at("12:00"))
    assert row("a").next_due_at == at("12:05")


def test_the_ticks_of_a_beat_whose_clock_is_behind_do_not_begin_an_interval_again(rules: Rules):
    rules.save("[a] every 1m => resume all", "[b] at * * * * * => resume all")
    moments = [at("12:00") + timedelta(seconds=n) for n in range(0, 130, 10)]
    for ahead in moments:
        rules.tick(ahead)
        rules.tick(ahead - timedelta(seconds=4))
    minutes = (at("12:01"), at("12:02"))
    assert sorted(rules.fired) == [(name, minute) for name in "ab" for minute in minutes]


def test_cron_is_in_the_time_zone_of_the_project_with_its_daylight_saving(rules: Rules):
    Tenant.objects.update(settings={"timezone": "Europe/Berlin"})
    rules.save("[a] at 30 2 * * * => resume all")
    rules.tick(at("12:00", day=26))  # Saturday, 28 March 2026: the clocks go forward that night
    assert row("a").next_due_at == at("01:30", day=27)  # 03:30 there, because there is no 02:30
    rules.tick(at("12:00", day=27))
    assert row("a").next_due_at == at("00:30", day=28)


def test_a_condition_that_does_not_hold_skips_the_rule(rules: Rules, fleet: Fleet):
    fleet.agent("forge")
    rules.save("[a] every 5m if alive(forge) => release forge")
    assert rules.ticks(at("12:00"), at("12:05")) == []
    assert status("a") == ("skip", "forge is not alive")
    assert row("a").evaluated_at == at("12:05")
    assert row("a").next_due_at == at("12:10")
    assert row("a").fired_at is None


def test_rules_of_one_tick_are_evaluated_against_one_snapshot_in_the_order_of_the_file(
    rules: Rules, fleet: Fleet
):
    fleet.enqueue(fleet.agent("forge"))
    rules.save(
        "[z] every 1m if alive(forge) => release forge",
        "[a] every 1m if alive(forge) => msg forge hello".replace("hello", '"hello"'),
    )
    assert rules.ticks(at("12:00"), at("12:01")) == [("z", at("12:01")), ("a", at("12:01"))]
    assert status("z") == ("ok", "released: forge")
    assert status("a")[0] == "ok"


def test_a_run_that_ends_between_two_rules_of_a_tick_is_alive_for_both(
    rules: Rules, fleet: Fleet, monkeypatch: pytest.MonkeyPatch
):
    """The run ends after the first rule was decided; only the next tick finds the agent without."""
    run = running(fleet, fleet.agent("forge"))
    rules.save(*(f"[{name}] every 1m if alive(forge) => resume all" for name in ("z", "a")))
    rules.tick(at("12:00"))

    def decide_and_end(rule: Rule, read: RuleColumns, evaluation: Evaluation) -> Decision:
        decision = decide(rule, read, evaluation)
        Run.objects.filter(pk=run.pk).update(state="succeeded", slot=None, finished_at=at("12:01"))
        return decision

    monkeypatch.setattr(tick, "decide", decide_and_end)
    assert rules.ticks(at("12:00:10"), at("12:01")) == [("z", at("12:01")), ("a", at("12:01"))]
    assert rules.ticks(at("12:01:10"), at("12:02")) == []
    assert status("a") == ("skip", "forge is not alive")


def test_an_action_acts_on_the_agents_that_were_idle_at_the_tick_of_its_rule(
    rules: Rules, fleet: Fleet
):
    """The executor performs the action later, when other agents are idle."""
    idle = running(fleet, fleet.agent("forge"), at("08:00"))
    busy = running(fleet, fleet.agent("beacon"), at("12:00"))
    rules.save("[a] every 1m if idle(any) > 2h => release {idle}")
    rules.holding = True
    rules.ticks(at("12:00"), at("12:01"))
    Run.objects.filter(pk=idle.pk).update(printed_at=at("12:01:05"))
    Run.objects.filter(pk=busy.pk).update(started_at=at("08:00"), created_at=at("08:00"))
    ((action, tenant_id),) = rules.held
    assert perform(action, tenant_id).done == "released: forge"
    assert list(Run.objects.exclude(stop_requested_at=None)) == [idle]


def test_rules_are_evaluated_in_the_order_of_the_file_after_every_edit(rules: Rules):
    """Neither in the order of their names nor of their rows, of which the newest is the last."""
    for order, minute in (("mb", "01"), ("zmba", "02"), ("bzm", "03")):
        rules.save(*(f"[{name}] at * * * * * => resume all" for name in order))
        rules.tick(at(f"12:{minute}") - timedelta(seconds=10))
        assert rules.tick(at(f"12:{minute}")) == list(order)


def test_no_rule_fires_while_the_scheduler_is_paused(rules: Rules, fleet: Fleet):
    rules.save('[a] every 1m => run "true"')
    control.pause_tenant(fleet.tenant, "ann", at("12:00"))
    assert rules.ticks(at("12:00"), at("12:01")) == []
    assert status("a") == ("skip", "the scheduler is paused")


# --- running actions ------------------------------------------------------------------------


def test_a_rule_does_not_fire_while_its_action_is_running(rules: Rules):
    rules.save('[a] every 1m => run "sleep 100"')
    rules.holding = True
    assert rules.ticks(at("12:00"), at("12:04")) == [("a", at("12:01"))]
    assert status("a") == ("run", "the previous action is still running")
    rules.end(ActionOutcome("exit code 0", exit_code=0), at("12:04:05"))
    assert rules.ticks(at("12:04:10"), at("12:05")) == [("a", at("12:05"))]


def test_a_tick_never_waits_for_actions(rules: Rules):
    """A summon that takes a minute does not delay the ticks, which come every ten seconds."""
    rules.save("[slow] every 1m => summon forge", "[b] every 10s => resume all")
    rules.holding = True
    rules.ticks(at("12:00"), at("12:01"))
    held = list(rules.held)
    rules.holding = False
    for action, tenant_id in held:
        if action.rule.name == "b":
            rules.submit(action, tenant_id)
    fired = rules.ticks(at("12:01:10"), at("12:02"))
    assert [moment for name, moment in fired if name == "b"] == [
        at("12:01:10") + timedelta(seconds=10 * number) for number in range(6)
    ]
    assert status("slow")[0] == "run"


def test_a_removed_rule_does_not_fire_and_its_running_action_may_end(rules: Rules):
    rules.save('[a] every 1m => run "sleep 100"')
    rules.holding = True
    rules.ticks(at("12:00"), at("12:01"))
    (rules.project / FILE_NAME).unlink()
    assert rules.ticks(at("12:01:10"), at("12:05")) == []
    assert row("a").next_due_at is None
    rules.end(ActionOutcome("exit code 0", exit_code=0), at("12:05"))
    assert not RuleState.objects.exists()
