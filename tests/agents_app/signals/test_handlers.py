"""The handlers of signals: authentication, validation and effect."""

from decimal import Decimal
from typing import Any

import pytest
from django.db import transaction

from agents_app.database.transactions import in_transaction
from agents_app.errors import DroverError, Refused
from agents_app.models import (
    Agent,
    LockWait,
    ResourceLock,
    Run,
    RunEvent,
    Schedule,
    Tenant,
    Usage,
    WorkItem,
)
from agents_app.runs import dispatch
from agents_app.runs.lifecycle import lose_run
from agents_app.secrets.credentials import set_credential
from agents_app.secrets.types import parse_name
from agents_app.signals import SIGNALS, cancel_wait, handle_signal
from agents_app.signals.fields import BadField
from agents_app.signals.locks import LockRefused
from agents_app.signals.receive import Superseded, Unauthorized
from tests.agents_app.calling import Program, program
from tests.agents_app.fleet import NOON, Fleet, at, event_names, run_states

CANARY = "canary-of-the-mine-4711"


@pytest.fixture
def one(fleet: Fleet) -> Program:
    return program(fleet, fleet.agent())


# --- authentication -------------------------------------------------------------------------


def refused(token: str, now: Any = NOON) -> tuple[type[DroverError], str]:
    with pytest.raises(DroverError) as caught:
        handle_signal(token, "status", {"text": "x"}, now)
    return type(caught.value), str(caught.value)


@pytest.mark.fault("F50")
def test_unknown_malformed_and_foreign_tokens_are_refused_in_the_same_words(
    fleet: Fleet, one: Program
):
    other = program(fleet, fleet.agent("other"))
    number, secret = one.job.run_id, other.job.secret
    tokens = [
        *("", "x", "drover_run_", "drover_run_1", "drover_run_x_y", "drover_run_²_y", "é"),
        *(f"drover_run_{number}_{secret}", f"drover_run_{number}_", f"drover_run_{10**40}_x"),
        *(f"drover_run_999999_{secret}", one.job.token[:-1], one.job.token.upper()),
    ]
    assert {refused(token) for token in tokens} == {(Unauthorized, "missing or invalid run token")}
    assert one.run.status_text == other.run.status_text == ""


def test_a_token_is_invalid_as_soon_as_its_run_ends(one: Program):
    one.says("status", text="well")
    one.ends()
    assert refused(one.job.token)[0] is Unauthorized


@pytest.mark.fault("F18", "F50")
def test_a_clock_that_is_set_back_does_not_revive_the_token_of_an_ended_run(one: Program):
    one.says("status", at(minutes=5), text="well")
    one.ends(now=at(minutes=5))
    for now in (at(minutes=5), NOON, at(hours=-1)):
        assert refused(one.job.token, now)[0] is Unauthorized


@pytest.mark.fault("F50")
def test_a_token_of_a_superseded_attempt_is_refused_as_superseded(fleet: Fleet, one: Program):
    Agent.objects.update(on_lost="retry")
    in_transaction(lambda: lose_run(one.run, NOON, "lost"))
    assert refused(one.job.token)[0] is Unauthorized  # no other attempt has started yet
    dispatch.admit_waiting(one.job.agent_id, NOON)
    assert refused(one.job.token)[0] is Superseded
    assert Superseded.http_status == 409


@pytest.mark.fault("F50")
def test_a_token_outlives_the_time_limit_by_a_minute_and_no_more(one: Program):
    seconds = Agent.objects.get().timeout_seconds
    one.says("status", at(seconds + 60), text="late")
    assert refused(one.job.token, at(seconds + 61))[0] is Unauthorized


def test_a_signal_after_the_end_of_the_run_changes_no_row(fleet: Fleet, one: Program):
    """The run ended after the token was checked and before the row was written."""
    run = one.run
    one.ends()
    for name, fields in [
        ("status", {"text": "x"}),
        ("exit", {"code": 3}),
        ("call", {"agent": "other", "text": ""}),
    ]:
        fleet.tenant.agents.get_or_create(name="other", defaults={"command": ["true"]})
        with pytest.raises(Refused), transaction.atomic():
            SIGNALS[name].handler(run, NOON, **fields)
    run.refresh_from_db()
    assert (run.status_text, run.exit_signal, run.calls.count()) == ("", None, 0)


def test_the_row_of_a_run_contains_no_token(one: Program):
    said = str(Run.objects.values().get())
    assert one.job.secret not in said and one.job.secret_sha256 in said


# --- status, progress, return ---------------------------------------------------------------


def test_a_status_text_is_stored_unchanged(one: Program):
    assert one.run.signaled_at is None
    assert one.says("status", text='say "héllo" 🐑\nand more') == {"ok": True}
    run = one.run
    assert (run.status_text, run.signaled_at) == ('say "héllo" 🐑\nand more', NOON)
    one.says("status", text="x" * 600)
    assert len(one.run.status_text) == 500
    assert "run.status" not in " ".join(event_names(run.pk))


def test_progress_is_a_number_from_0_to_100(one: Program):
    one.says("progress", percent=12.5, text="on it")
    assert (one.run.progress_percent, one.run.status_text) == (12.5, "on it")
    one.says("progress", percent="80")
    assert (one.run.progress_percent, one.run.status_text) == (80, "on it")
    for wrong in (-1, 101, "x", float("nan"), True, [1], "\uff11"):
        with pytest.raises(DroverError, match="percent"):
            one.says("progress", percent=wrong)


def test_a_return_value_is_stored_complete_and_its_summary_is_truncated(one: Program):
    one.says("return", text="short")
    assert (one.run.return_value, one.run.result_summary) == ("short", "short")
    long = "é" * 5000
    one.says("return", text=long)
    run = one.run
    assert run.return_value == long
    head, mark = run.result_summary[:2048], run.result_summary[2048:]
    assert (head, mark) == ("é" * 2048, "\n…[truncated]")
    assert "run.returned" in event_names(run.pk)


def test_the_summary_never_cuts_a_character_in_two(one: Program):
    one.says("return", text="x" + "é" * 3000)
    assert one.run.result_summary == "x" + "é" * 2047 + "\n…[truncated]"


def test_a_return_value_has_an_upper_limit(one: Program):
    with pytest.raises(DroverError) as caught:
        one.says("return", text="x" * 1_000_001)
    assert caught.value.http_status == 413
    assert one.run.return_value == ""


@pytest.mark.parametrize(
    ("name", "fields", "message"),
    [
        ("status", {}, "text: this field is required"),
        ("status", {"text": 5}, "text: expected text, got a number"),
        ("status", {"text": "a\0b"}, "NUL"),
        ("status", {"text": "\ud800"}, "surrogate"),
        ("status", {"text": "x", "more": 1}, "'more': unknown field"),
        ("progress", {"text": "x"}, "percent: this field is required"),
        ("metadata", {"key": "a"}, "value: this field is required"),
        ("exit", {"code": 256}, "code: expected a whole number from 0 to 255"),
        ("wait", {"ids": []}, "ids: expected 1 to 2000"),
        ("wait", {"ids": ["x"]}, "ids: expected a call id"),
        ("check", {"id": 0}, "id: expected"),
        ("lock", {"uri": "a:b", "wait": "maybe"}, "wait: expected a number"),
        ("inbox", {"peek": "maybe"}, "peek: expected true or false"),
        ("dance", {}, "there is no signal 'dance'"),
    ],
)
def test_an_invalid_field_is_refused_and_named(
    one: Program, name: str, fields: dict[str, Any], message: str
):
    with pytest.raises(DroverError, match=message):
        one.says(name, **fields)
    assert one.run.signaled_at is None


# --- rerun, exit, shutdown ------------------------------------------------------------------


def scheduled(fleet: Fleet, **columns: Any) -> tuple[Agent, Program]:
    agent = fleet.agent(**columns)
    fleet.fire(fleet.schedule(agent))
    return agent, Program(fleet, fleet.start(agent.work_items.get()))


def test_a_requested_rerun_starts_at_once(fleet: Fleet):
    agent, one = scheduled(fleet, max_reruns=1)
    one.says("rerun")
    following = one.ends(hand_over=True)
    assert following is not None and following.rerun == 1
    again = Program(fleet, following)
    again.says("rerun")
    assert again.ends() is None
    assert run_states(agent) == ["succeeded", "succeeded"]
    assert "run.rerun_requested" in event_names(one.job.run_id)


def test_a_rerun_signal_has_no_effect_without_a_schedule_or_after_a_failure(fleet: Fleet):
    by_hand = program(fleet, fleet.agent("by-hand"))
    by_hand.says("rerun")
    assert by_hand.ends() is None
    _, failed = scheduled(fleet, name="failed")
    failed.says("rerun")
    assert failed.ends("failed") is None


def test_the_exit_signal_overrides_a_rerun_and_a_success(fleet: Fleet):
    agent, one = scheduled(fleet)
    one.says("rerun")
    one.says("exit")
    assert one.ends() is None
    run = one.run
    assert (run.state, run.exit_code, run.error) == ("failed", 15, "unrecoverable (exit code 15)")
    assert agent.work_items.get().state == "failed"


def test_an_exit_signal_of_0_makes_a_failed_program_a_success(one: Program):
    one.says("exit", code="0")
    one.ends("failed", error="exit 3", exit_code=3)
    assert (one.run.state, one.run.exit_code) == ("succeeded", 0)


def test_an_exit_signal_does_not_change_a_timeout(one: Program):
    one.says("exit", code=0)
    one.ends("timed_out", error="over its time limit")
    assert one.run.state == "timed_out"


def test_a_run_that_sends_shutdown_is_stopped(one: Program):
    one.says("shutdown")
    run = one.run
    assert (run.stop_requested_at, run.error) == (NOON, "stopped by itself")


def test_agents_and_calls_of_other_tenants_are_not_found(fleet: Fleet, one: Program):
    other_tenant = Fleet(Tenant.objects.create(name="acme"))
    theirs = program(other_tenant, other_tenant.agent("theirs"))
    for name, fields in [
        ("call", {"agent": one.run.agent.name}),
        ("check", {"id": 1}),
        ("wait", {"ids": [1]}),
    ]:
        with pytest.raises(DroverError) as caught:
            theirs.says(name, **fields)
        assert caught.value.http_status == 404


# --- usage ----------------------------------------------------------------------------------


def test_usage_is_added_to_the_run_and_to_the_day_of_its_agent(one: Program):
    one.says("usage", tokens_in=100, tokens_out=20)
    said = one.says("usage", tokens_cache="5", cost_usd="0.25")
    totals = {"tokens_in": 100, "tokens_out": 20, "tokens_cache": 5, "cost_usd": 0.25}
    assert said == {"ok": True, "totals": totals, "over_budget": False}
    used = Usage.objects.get()
    assert (used.tokens, used.cost_usd) == (125, Decimal("0.25"))
    assert one.run.signaled_at == NOON


def test_a_run_over_its_budget_is_told_and_stopped(fleet: Fleet):
    one = program(fleet, fleet.agent(budget={"tokens_per_run": 1000}))
    assert one.says("usage", tokens_in=1000)["over_budget"] is False
    assert one.says("usage", tokens_in=1)["over_budget"] is True
    assert one.run.stop_requested_at == NOON
    assert one.run.error.startswith("budget: ")


@pytest.mark.parametrize(
    "fields",
    [
        {"tokens_in": -1},
        {"tokens_in": 1.5},
        {"cost_usd": "much"},
        {"cost_usd": 100_001},
        {"tokens": 1},
    ],
)
def test_invalid_usage_is_refused(one: Program, fields):
    with pytest.raises(BadField):
        one.says("usage", **fields)
    assert not Usage.objects.exists()


# --- schedule -------------------------------------------------------------------------------


def test_a_run_schedules_its_own_agent(one: Program):
    said = one.says("schedule", line="in 5 minutes: look again")
    schedule = Schedule.objects.get()
    assert said["ok"]
    assert said["scheduleId"] == schedule.pk
    assert "OK: scheduled" in said["text"]
    assert (schedule.agent_id, schedule.prompt) == (one.job.agent_id, "look again")


def test_an_unknown_schedule_phrase_is_refused_with_the_accepted_forms(one: Program):
    with pytest.raises(BadField, match="every monday"):
        one.says("schedule", line="whenever you like: look again")
    assert not Schedule.objects.exists()


# --- secrets --------------------------------------------------------------------------------


@pytest.fixture
def keeper(fleet: Fleet) -> Program:
    set_credential(fleet.tenant, parse_name("github_token"), {"value": CANARY}, "ann", NOON)
    return program(fleet, fleet.agent(credentials=["github_token"]))


def test_secrets_are_removed_from_status_and_return_value(keeper: Program):
    keeper.says("status", text=f"pushing with {CANARY}")
    keeper.says("return", text=f"used {CANARY} and {keeper.job.token}")
    run = keeper.run
    said = f"{run.status_text} {run.return_value} {run.result_summary}"
    assert CANARY not in said
    assert keeper.job.secret not in said
    assert run.status_text == "pushing with [redacted github_token]"


def test_secrets_are_removed_from_calls_and_schedules(keeper: Program, fleet: Fleet):
    keeper.calls(fleet.agent("other"))
    keeper.says("call", agent="other", text=f"take {CANARY}")
    keeper.says("schedule", line=f"in 5 minutes: try {CANARY}")
    prompts = [*WorkItem.objects.values_list("prompt", "context")]
    assert CANARY not in str(prompts)
    assert CANARY not in Schedule.objects.get().prompt


def test_secrets_are_removed_from_the_names_of_locks(keeper: Program, fleet: Fleet):
    """The name without the secret stays a valid URI, and is the same for every signal."""
    other = program(fleet, fleet.agent("other", credentials=["github_token"]))
    uri = f"https://{CANARY}@example.org/{CANARY}?q=1"
    keeper.says("lock", uri=uri)
    with pytest.raises(LockRefused) as refused:
        other.says("lock", uri=uri)
    assert not other.says("lock", uri=uri, wait=True)["ok"]
    assert LockWait.objects.get().in_line
    cancel_wait(other.job.token, "lock", {"uri": uri, "wait": True}, NOON)
    assert not LockWait.objects.get().in_line
    keeper.says("lock-heartbeat", uri=uri)
    mark = "redacted-github_token"
    assert ResourceLock.objects.get().uri == f"https://{mark}@example.org/{mark}?q=1"
    keeper.says("unlock", uri=uri)
    stored = [*RunEvent.objects.values_list("detail"), *LockWait.objects.values_list("uri")]
    assert CANARY not in f"{stored} {refused.value} {refused.value.more}"
    assert not ResourceLock.objects.exists()


def test_secrets_with_control_characters_inside_are_removed(keeper: Program):
    keeper.says("status", text=f"with {CANARY[:5]}\x1b[31m{CANARY[5:]}\x1b[0m")
    assert keeper.run.status_text == "with [redacted github_token]\x1b[0m"


def test_the_text_of_a_run_without_secrets_arrives_unchanged(one: Program):
    text = "quotes \" ' `, a\nline, ümlaut, \N{BUG}"
    one.says("return", text=text)
    assert Run.objects.get(pk=one.job.run_id).return_value == text
