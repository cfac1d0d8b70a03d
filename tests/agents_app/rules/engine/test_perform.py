"""Actions of rules: effects on agents, the outcome of the rule, and the journal."""

import pytest

from agents_app.conf import CONF
from agents_app.models import Agent, Message, RuleState, Run, RunEvent, WorkItem
from agents_app.rules.engine.outcome import ActionOutcome
from agents_app.rules.engine.silence import end_silence, start_silence
from tests.agents_app.fleet import Fleet, running
from tests.agents_app.rules.engine.rules_clock import Rules, at, event_details, row, status


def test_a_summon_within_a_minute_of_a_summon_by_any_rule_is_skipped(rules: Rules, fleet: Fleet):
    fleet.agent("forge", scale=5)
    rules.save("[a] every 1m => summon forge", "[b] every 70s => summon forge")
    rules.ticks(at("12:00"), at("12:01:10"))
    assert status("a") == ("ok", "summoned: forge")
    assert status("b") == ("skip", "forge was summoned less than 60 seconds ago")
    rules.tick(at("12:02"))
    assert Run.objects.count() == 2
    assert set(WorkItem.objects.values_list("trigger", "requested_by", "rule__name")) == {
        ("rule", "rule a", "a")
    }
    requested = RunEvent.objects.filter(name="work.requested")
    assert list(requested.values_list("actor", flat=True)) == ["rule a"] * 2


def test_a_summon_that_is_still_queued_is_not_repeated(rules: Rules, fleet: Fleet):
    """A paused agent that is missing must not find a hundred runs when it is resumed."""
    fleet.agent("forge", paused_at=at("12:00"))
    rules.save('[a] every 1m if not alive(forge) => summon forge "Look around at {timestamp}"')
    rules.ticks(at("12:00"), at("12:05"))
    prompts = list(WorkItem.objects.values_list("prompt", flat=True))
    assert prompts == ["Look around at 2026-03-02T12:01:00+00:00"]
    assert status("a") == ("skip", "an earlier summon of forge is still queued")


def test_a_queued_summon_does_not_block_one_with_another_prompt(rules: Rules, fleet: Fleet):
    fleet.agent("forge", paused_at=at("12:00"))
    rules.save(*(f'[{name}] every 30s => summon forge "{name}"' for name in ("first", "second")))
    rules.ticks(at("12:00"), at("12:05"))
    assert set(WorkItem.objects.values_list("prompt", flat=True)) == {"first", "second"}
    assert status("second") == ("skip", "an earlier summon of forge is still queued")


def test_an_abandoned_rule_stays_abandoned_while_its_actions_are_skipped(
    rules: Rules, fleet: Fleet
):
    fleet.agent("forge")
    rules.save("[a] every 10s => summon forge")
    rules.holding = True
    rules.ticks(at("12:00"), at("12:00:10"))
    who, _, _ = row("a").held_by.rsplit("|", 2)
    RuleState.objects.update(held_by=f"{who}|999999|1.00")
    Agent.objects.update(summoned_at=at("12:00:15"))
    rules.holding = False
    rules.ticks(at("12:00:20"), at("12:00:30"))
    assert status("a") == ("abandoned", "forge was summoned less than 60 seconds ago")


def test_an_abandoned_rule_is_ok_after_a_success(rules: Rules):
    rules.save('[a] every 1m => run "true"')
    rules.holding = True
    rules.ticks(at("12:00"), at("12:01"))
    rules.end(ActionOutcome(stopped="beat was stopped"), at("12:01:05"))
    rules.ticks(at("12:01:10"), at("12:01:50"))
    assert status("a") == ("abandoned", "beat was stopped")
    assert rules.tick(at("12:02")) == ["a"]
    rules.end(ActionOutcome("exit code 0", exit_code=0), at("12:02:05"))
    assert status("a") == ("ok", "exit code 0")


def test_a_message_reaches_a_live_run_or_becomes_work(rules: Rules, fleet: Fleet):
    running(fleet, fleet.agent("forge"))
    fleet.agent("beacon")
    rules.save('[a] every 1m => msg forge,beacon "It is {timestamp} at {crew}"')
    rules.ticks(at("12:00"), at("12:01"))
    prompts = f"It is 2026-03-02T12:01:00+00:00 at {CONF.project.name}"
    unread = Message.objects.get(agent__name="forge")
    work = Message.objects.get(agent__name="beacon")
    assert (unread.text, unread.sender, unread.read_at) == (prompts, "rule a", None)
    assert work.work_item is not None
    assert work.work_item.prompt == prompts


def test_all_means_live_agents_and_for_a_pause_every_agent(rules: Rules, fleet: Fleet):
    running(fleet, fleet.agent("forge"))
    fleet.agent("beacon")
    rules.save('[a] every 1m => msg all "hello"', "[b] every 1m => pause all")
    rules.ticks(at("12:00"), at("12:01"))
    assert [m.agent.name for m in Message.objects.select_related("agent")] == ["forge"]
    assert Agent.objects.filter(paused_at__isnull=False).count() == 2
    assert status("b") == ("ok", "paused: beacon, forge")


def test_idle_agents_are_released_by_name_and_named_in_messages(rules: Rules, fleet: Fleet):
    idle = running(fleet, fleet.agent("forge"), at("08:00"))
    running(fleet, fleet.agent("beacon"), at("12:00"))
    fleet.agent("drift")
    rules.save(
        "[a] every 1m if idle(any) > 2h => release {idle}",
        '[b] every 1m if idle(any) > 2h => msg drift "{idle} for {idle_duration}"',
    )
    rules.ticks(at("12:00"), at("12:01"))
    stopping = Run.objects.filter(stop_requested_at__isnull=False)
    assert list(stopping.values_list("pk", "error")) == [(idle.pk, "stopped by rule a")]
    assert Message.objects.get().text == "forge for 4h 1m"


def test_silence_holds_back_messages_and_nothing_else(rules: Rules, fleet: Fleet):
    running(fleet, fleet.agent("forge"))
    fleet.agent("beacon")
    rules.save(
        '[tell] every 1m => msg forge "hello"',
        "[release] every 1m => release forge",
        "[summon] every 1m => summon beacon",
    )
    start_silence(fleet.tenant, "ann", at("12:00"), until=at("12:02"))
    assert [name for name, _ in rules.ticks(at("12:00"), at("12:01"))] == ["release", "summon"]
    assert status("tell") == ("skip", "messages are silenced")
    assert ("tell", at("12:02")) in rules.ticks(at("12:01:10"), at("12:02"))
    assert Message.objects.count() == 1
    assert event_details("rules.silenced") == ["ann: until 2026-03-02 12:02 UTC"]


def test_silence_does_not_hold_back_commands(rules: Rules, fleet: Fleet):
    """Also a command that sends a message itself."""
    rules.save('[a] every 1m => run "mail ann"', '[b] every 1m => msg forge "hello"')
    rules.outcome = ActionOutcome("exit code 0", exit_code=0)
    start_silence(fleet.tenant, "ann", at("12:00"))
    assert rules.ticks(at("12:00"), at("12:01")) == [("a", at("12:01"))]
    assert (status("a"), status("b")[0]) == (("ok", "exit code 0"), "skip")


def test_silence_without_an_end_lasts_until_it_is_ended(rules: Rules, fleet: Fleet):
    fleet.agent("forge")
    rules.save('[tell] every 1m => msg forge "hello"')
    rules.tick(at("12:00"))
    start_silence(fleet.tenant, "ann", at("12:00"))
    rules.ticks(at("12:00:10"), at("12:10"))
    assert Message.objects.count() == 0
    assert end_silence(fleet.tenant, "bob", at("12:10"))
    assert not end_silence(fleet.tenant, "bob", at("12:10"))
    rules.ticks(at("12:10:10"), at("12:11"))
    assert Message.objects.count() == 1
    assert event_details("rules.heard") == ["bob"]


def test_releasing_an_agent_without_runs_succeeds_and_an_unknown_agent_fails(
    rules: Rules, fleet: Fleet
):
    fleet.agent("forge")
    rules.save("[a] every 1m => release forge", "[b] every 1m => release ghost")
    rules.ticks(at("12:00"), at("12:01"))
    assert status("a") == ("ok", "released: forge")
    assert status("b") == (
        "backoff",
        "there is no agent 'ghost': add its directory, or correct the rule",
    )


def test_a_target_that_fails_does_not_stop_the_other_targets(rules: Rules, fleet: Fleet):
    fleet.agent("forge")
    fleet.agent("beacon", scale=0)
    rules.save('[a] every 1m => msg ghost,beacon,forge "hello"')
    rules.ticks(at("12:00"), at("12:01"))
    assert [m.agent.name for m in Message.objects.select_related("agent")] == ["forge"]
    assert row("a").failures == 1
    assert "ghost" in row("a").reason
    assert "beacon: the agent's scale is 0" in row("a").reason


@pytest.mark.parametrize(
    ("action", "column", "value"),
    [("pause forge", "paused_at", at("12:01")), ("scale forge 3", "scale", 3)],
)
def test_a_rule_can_pause_and_scale_an_agent(
    rules: Rules, fleet: Fleet, action: str, column: str, value: object
):
    fleet.agent("forge")
    rules.save(f"[a] every 1m => {action}")
    rules.ticks(at("12:00"), at("12:01"))
    assert getattr(Agent.objects.get(), column) == value
    assert status("a")[0] == "ok"


def test_a_rule_resumes_a_paused_agent(rules: Rules, fleet: Fleet):
    fleet.agent("forge", paused_at=at("11:00"), pause_note="ann")
    rules.save("[a] every 1m if queue(forge) > 1 => resume forge")
    fleet.enqueue(Agent.objects.get())
    rules.ticks(at("12:00"), at("12:01"))
    assert status("a") == ("skip", "1 queued for forge")
    fleet.enqueue(Agent.objects.get())
    rules.ticks(at("12:01:10"), at("12:02"))
    assert Agent.objects.get().paused_at is None
    assert event_details("agent.resumed") == ["rule a"]
