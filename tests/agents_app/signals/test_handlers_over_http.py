"""What a run uses, when it wants to run again, and that its secrets are in nothing it says."""

from decimal import Decimal

import pytest

from agents_app.models import Run, Schedule, Usage, WorkItem
from agents_app.secrets.credentials import set_credential
from agents_app.secrets.types import parse_name
from agents_app.signals.fields import BadField
from tests.agents_app.calling import Program, program
from tests.agents_app.fleet import NOON, Fleet

CANARY = "canary-of-the-mine-4711"


@pytest.fixture
def one(fleet: Fleet) -> Program:
    return program(fleet, fleet.agent())


# --- usage ----------------------------------------------------------------------------------


def test_what_a_run_used_adds_up_for_it_and_for_its_agents_day(one: Program):
    one.says("usage", tokens_in=100, tokens_out=20)
    said = one.says("usage", tokens_cache="5", cost_usd="0.25")
    totals = {"tokens_in": 100, "tokens_out": 20, "tokens_cache": 5, "cost_usd": 0.25}
    assert said == {"ok": True, "totals": totals, "over_budget": False}
    used = Usage.objects.get()
    assert (used.tokens, used.cost_usd) == (125, Decimal("0.25"))
    assert one.run.signaled_at == NOON


def test_a_run_over_its_budget_is_told_so_and_asked_to_end(fleet: Fleet):
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
def test_usage_that_makes_no_sense_is_refused(one: Program, fields):
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


def test_a_phrase_that_means_nothing_is_refused_with_the_forms_that_do(one: Program):
    with pytest.raises(BadField, match="every monday"):
        one.says("schedule", line="whenever you like: look again")
    assert not Schedule.objects.exists()


# --- secrets --------------------------------------------------------------------------------


@pytest.fixture
def keeper(fleet: Fleet) -> Program:
    set_credential(fleet.tenant, parse_name("github_token"), {"value": CANARY}, "ann", NOON)
    return program(fleet, fleet.agent(credentials=["github_token"]))


def test_what_a_run_says_of_itself_has_no_secret_of_its_in_it(keeper: Program):
    keeper.says("status", text=f"pushing with {CANARY}")
    keeper.says("return", text=f"used {CANARY} and {keeper.job.token}")
    run = keeper.run
    said = f"{run.status_text} {run.return_value} {run.result_summary}"
    assert CANARY not in said
    assert keeper.job.secret not in said
    assert run.status_text == "pushing with [redacted github_token]"


def test_what_a_run_asks_of_others_and_of_later_has_none_either(keeper: Program, fleet: Fleet):
    keeper.calls(fleet.agent("other"))
    keeper.says("call", agent="other", text=f"take {CANARY}")
    keeper.says("schedule", line=f"in 5 minutes: try {CANARY}")
    prompts = [*WorkItem.objects.values_list("prompt", "context")]
    assert CANARY not in str(prompts)
    assert CANARY not in Schedule.objects.get().prompt


def test_the_text_of_a_run_without_secrets_arrives_unchanged(one: Program):
    text = "quotes \" ' `, a\nline, ümlaut, \N{BUG}"
    one.says("return", text=text)
    assert Run.objects.get(pk=one.job.run_id).return_value == text
