"""`manage.py rules`: the state table, the dry run that does nothing, silence."""

from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from agents_app.models import Message, RuleBook, RuleState, Run, RunEvent, Tenant, WorkItem
from agents_app.rules.engine.dry_run import dry_run_rules
from agents_app.rules.language.parse import parse_file
from tests.agents_app.fleet import Fleet
from tests.agents_app.management.calling import call

pytestmark = pytest.mark.django_db
FILE = "scheduler.rules"
# All of the language that the documents show.
COMPLETE = """
# === Agent Lifecycle ===

# Keep an agent alive -- re-summon if it disappears
[keep-forge] every 1m if not alive(forge) => summon forge

# Release agents idle for 4 hours
[idle-release] every 5m if idle(any) > 4h => release {idle}

# === Scheduled Tasks ===
[daily-narrative] at 0 0 * * * => msg beacon "Write daily narrative for today"
[weekly-summary] at 0 1 * * 0 => summon beacon "Build weekly narrative"

# === Health Checks ===
[api-tests] at 0 9-17 * * 1-5 => run "dotnet test api/Tests -v minimal"

# === Notifications ===
[idle-nudge] every 30m if idle(all) > 10m => msg drift "All agents idle for {idle_duration}"
"""


def now() -> datetime:
    return datetime.now(UTC)


def due(fleet: Fleet, text: str, **columns: object) -> RuleState:
    """A rule that has been waiting for this moment."""
    name = text[1 : text.index("]")]
    values = {"line": 1, "next_due_at": now() - timedelta(seconds=1), **columns}
    return RuleState.objects.create(tenant=fleet.tenant, name=name, text=text, **values)


# --- test -----------------------------------------------------------------------------------


def test_the_file_of_the_project_is_tried_for_its_own_tenant_only(fleet: Fleet, project: Path):
    Tenant.objects.create(name="other")
    (project / FILE).write_text(COMPLETE)
    assert call("rules", "test", "--tenant", "other", "--json").json["rules"] == []
    said = call("rules", "test", "--tenant", "other")
    assert said.out.strip() == f"no rules in {FILE} for other"


def test_a_complete_file_is_tried_although_its_agents_do_not_exist(fleet: Fleet, project: Path):
    (project / FILE).write_text(COMPLETE)
    said = call("rules", "test", "--json")
    assert said.code == 0, said.err
    told = {rule["name"]: rule for rule in said.json["rules"]}
    assert list(told) == [
        *("keep-forge", "idle-release", "daily-narrative", "weekly-summary"),
        *("api-tests", "idle-nudge"),
    ]
    assert told["keep-forge"]["condition"] is True
    assert told["keep-forge"]["because"] == "forge is not alive"
    assert told["keep-forge"]["warnings"] == ["there is no agent forge"]
    assert told["idle-nudge"]["because"] == "no agent is alive"
    assert not any(rule["fires"] for rule in told.values())
    assert "keep-forge" in call("rules", "test").out


def test_a_rule_that_is_due_and_true_would_fire_and_nothing_is_done(fleet: Fleet, project: Path):
    agent = fleet.agent("forge")
    texts = ["[a] every 1m if not alive(forge) => summon forge", '[b] every 1m => msg forge "x"']
    (project / FILE).write_text("\n".join([*texts, '[c] every 1m => run "touch made"']))
    for text in (*texts, '[c] every 1m => run "touch made"'):
        due(fleet, text)
    before = list(RuleState.objects.order_by("pk").values())
    said = call("rules", "test", "--json")
    assert [rule["fires"] for rule in said.json["rules"]] == [True, True, True]
    assert list(RuleState.objects.order_by("pk").values()) == before
    assert not (project / "made").exists()
    assert not (Run.objects.exists() or WorkItem.objects.exists() or Message.objects.exists())
    assert not RunEvent.objects.filter(agent=agent).exists()


def test_each_reason_why_a_rule_would_not_fire_is_named(fleet: Fleet, project: Path):
    fleet.agent("forge")
    soon = now() + timedelta(minutes=5)
    rows = {
        "[early] every 1m => summon forge": {"next_due_at": soon},
        "[false] every 1m if alive(forge) => summon forge": {},
        '[quiet] every 1m => msg forge "x"': {},
        "[tired] every 1m => summon forge": {
            **{"status": "backoff", "failures": 3, "backoff_until": soon, "next_due_at": soon},
            "reason": "no such agent",
        },
        "[busy] every 1m => summon forge": {"held_by": "elsewhere", "held_until": soon},
    }
    (project / FILE).write_text("\n".join([*rows, "[new] every 1m => summon forge"]))
    for text, columns in rows.items():
        due(fleet, text, **columns)
    RuleBook.objects.create(tenant=fleet.tenant, silenced_at=now(), silenced_by="ann")
    why = {rule["name"]: rule["why_not"] for rule in call("rules", "test", "--json").json["rules"]}
    assert why == {
        "early": ["not due"],
        "false": ["forge is not alive"],
        "quiet": ["messages are silenced"],
        "tired": ["the rule failed 3 times in a row and waits: no such agent", "not due"],
        "busy": ["the previous action is still running"],
        "new": ["not due: the rule is new or has changed"],
    }


def test_a_summon_that_would_be_left_out_says_why_as_the_rule_itself_would(
    fleet: Fleet, project: Path
):
    lately = now() - timedelta(seconds=30)
    fleet.agent("fresh", summoned_at=lately)
    fleet.agent("early", summoned_at=now() + timedelta(seconds=30))
    fleet.agent("rested", summoned_at=now() - timedelta(seconds=61))
    forge = fleet.agent("forge", paused_at=lately, summoned_at=lately)
    fleet.enqueue(forge, trigger="rule", requested_by="rule gone", prompt="same text")
    fleet.enqueue(forge, trigger="manual", requested_by="ann", prompt="of a person")
    texts = (
        *("[a] every 1m => summon fresh", "[b] every 1m => summon early"),
        *("[c] every 1m => summon rested", "[d] every 1m => summon ghost"),
        '[asked] every 1m => summon forge "at {timestamp}"',
        '[same] every 1m => summon forge "same text"',
        '[new] every 1m => summon forge "of a person"',
    )
    (project / FILE).write_text("\n".join(texts))
    for text in texts:
        due(fleet, text)
    asked = RuleState.objects.get(name="asked")
    fleet.enqueue(forge, trigger="rule", rule_id=asked.pk, prompt="another text")
    why = {rule["name"]: rule["why_not"] for rule in call("rules", "test", "--json").json["rules"]}
    assert why == {
        "a": ["fresh was summoned less than 60 seconds ago"],
        "b": ["early was summoned less than 60 seconds ago"],
        "c": [],
        "d": [],
        "asked": ["an earlier summon of forge is still queued"],
        "same": ["an earlier summon of forge is still queued"],
        "new": ["forge was summoned less than 60 seconds ago"],
    }


def test_a_dry_run_costs_the_same_number_of_queries_whatever_is_summoned(fleet: Fleet):
    def queries(count: int) -> int:
        lines = (f"[{at}] every 1m => summon a{at}" for at in range(count))
        with CaptureQueriesContext(connection) as made:
            dry_run_rules(fleet.tenant, parse_file("\n".join(lines)).rules, now())
        return len(made)

    for number in range(5):
        fleet.enqueue(fleet.agent(f"a{number}", paused_at=now()), trigger="rule")
    assert queries(1) == queries(5)


def test_a_line_that_does_not_parse_is_shown_with_its_place_and_the_code_is_1(
    fleet: Fleet, project: Path
):
    (project / FILE).write_text("[a] every 1m => summon forge\n[b] every 5x => summon forge\n")
    said = call("rules", "test")
    assert said.code == 1
    assert 'scheduler.rules:2:11: "5x" is not a valid duration (expected a whole number' in said.out
    assert "    [b] every 5x => summon forge\n              ^\n" in said.out
    told = call("rules", "test", "--json").json
    assert not told["ok"]
    assert [(error["line"], error["code"]) for error in told["errors"]] == [(2, "bad_duration")]


def test_another_file_can_be_tried(fleet: Fleet, tmp_path: Path):
    other = tmp_path / "edit.rules"
    other.write_text("[a] every 1m => summon ghost")
    said = call("rules", "test", "--file", str(other))
    assert "edit.rules:1: warning: there is no agent ghost" in said.out
    assert "there is no file" in call("rules", "test", "--file", str(tmp_path / "none")).err
    other.write_bytes(b"\n\xff\n")
    said = call("rules", "test", "--file", str(other))
    assert (said.code, ":2:1: the byte 0xFF is not UTF-8" in said.out) == (1, True)


def test_where_there_is_no_file_there_are_no_rules(fleet: Fleet, project: Path):
    said = call("rules", "test")
    assert (said.code, "no rules in" in said.out) == (0, True)
    assert call("rules", "list").out == "SCH --: Scheduler rules: none\n"


@pytest.mark.parametrize(("lines", "said"), [(1, "1 rule"), (2, "2 rules")])
def test_rules_that_beat_has_not_read_yet_are_announced(
    fleet: Fleet, project: Path, lines: int, said: str
):
    (project / FILE).write_text("every 1m => summon forge\n" * lines)
    unread = f"SCH --: {said} in the file, not loaded yet: is Drover running?\n"
    assert call("rules", "list").out == unread
    book = RuleBook.objects.create(tenant=fleet.tenant)
    assert call("rules", "list").out == unread
    Tenant.objects.create(name="other")
    none = "SCH --: Scheduler rules: none\n"
    assert call("rules", "list", "--tenant", "other").out == none
    book.loaded_at = now()
    book.save()
    assert call("rules", "list").out == none


# --- list -----------------------------------------------------------------------------------


def test_the_state_table_shows_each_rule_in_the_order_of_the_file(fleet: Fleet):
    ago = now() - timedelta(minutes=3)
    due(fleet, "[z] every 1m if not alive(forge) => summon forge", evaluated_at=ago, status="skip")
    failing = {"status": "backoff", "failures": 3, "line": 2}
    due(fleet, '[a] at 0 9 * * 1-5 => run "make test"', **failing)
    out = call("rules", "list").out.splitlines()
    assert out[0].split() == ["NAME", "TRIGGER", "CONDITION", "ACTION", "LAST", "STATUS", "NEXT"]
    assert out[1].split("  ")[0] == "z"
    assert "not alive(forge)" in out[1] and "3 min ago" in out[1] and "skip" in out[1]
    assert "--" in out[2] and "!3 bk" in out[2]
    assert out[-1].startswith("SCH 2 !1: ")
    told = call("rules", "list", "--json").json
    assert [rule["status"] for rule in told["rules"]] == ["skip", "backoff"]
    assert told["indicator"] == "SCH 2 !1"


def test_the_state_table_says_what_is_wrong_with_the_file(fleet: Fleet):
    error = {"code": "bad_duration", "line": 3, "column": 7, "raw": "every 5x => pause x"}
    RuleBook.objects.create(
        tenant=fleet.tenant,
        errors=[{**error, "problem": '"5x" is not a valid duration', "expected": "5m"}],
        disabled_at=now(),
        crash="ZeroDivisionError: division by zero",
    )
    out = call("rules", "list").out
    assert 'scheduler.rules:3:7: "5x" is not a valid duration (expected 5m' in out
    assert "rules disabled: ZeroDivisionError" in out
    assert out.splitlines()[-1].startswith("SCH X: ")


# --- silence --------------------------------------------------------------------------------


def test_silence_is_switched_on_for_a_while_and_off(fleet: Fleet):
    assert call("rules", "silence").out == "messages are sent\n"
    said = call("rules", "silence", "on", "--for", "2h", "--json").json
    assert said["silent"]
    until = RuleBook.objects.get().silent_until
    assert until is not None
    assert timedelta(minutes=119) < until - now() <= timedelta(hours=2)
    assert "messages are silenced until 20" in call("rules", "silence").out
    assert call("rules", "silence", "off").out == "messages are sent\n"
    names = RunEvent.objects.order_by("pk").values_list("name", flat=True)
    assert list(names) == ["rules.silenced", "rules.heard"]


def test_silence_without_an_end_lasts(fleet: Fleet):
    assert "until it is ended" in call("rules", "silence", "on").out
    assert RuleBook.objects.get().silent_until is None


@pytest.mark.parametrize(
    ("arguments", "reason"),
    [
        (["on", "--for", "soon"], "invalid duration"),
        (["on", "--until", "never"], "cannot read"),
        (["on", "--until", "2020-01-01"], "give a time in the future"),
        (["on", "--for", "1h", "--until", "tomorrow"], "use either --for or --until"),
        (["off", "--for", "1h"], "silence on --for 2h"),
        (["on", "--for", "0"], "give a time in the future"),
        (["on", "--for", "90000000h"], "after the year 9999"),
    ],
)
def test_a_silence_that_makes_no_sense_is_refused(fleet: Fleet, arguments: list[str], reason: str):
    said = call("rules", "silence", *arguments)
    assert (said.code, reason in said.err) == (1, True), said.err
    assert not RuleBook.objects.exists()
