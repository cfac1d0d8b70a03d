"""/v1/rules: the state of the rules, dry runs, and silence."""

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from agents_app.conf import CONF
from agents_app.models import Message, RuleBook, RuleState, RunEvent
from tests.agents_app.admin.visitors import who_may
from tests.agents_app.fleet import NOON, Fleet
from tests.gateway_app.api.calling import HOUR, Api, api_of

TEXT = "[keep] every 1m if not alive(forge) => summon forge"
BAD = {"code": "bad_duration", "line": 2, "column": 7, "problem": "p", "expected": "e", "raw": "r"}
NOUNS = ("agent", "schedule", "run", "workitem", "delivery")
CHANGE = "change_rulestate"


@pytest.fixture
def file() -> Iterator[Path]:
    CONF.project.mkdir(parents=True, exist_ok=True)
    path = CONF.project / "scheduler.rules"
    yield path
    path.unlink(missing_ok=True)


def now() -> float:
    return datetime.now(UTC).timestamp()


# --- the state ------------------------------------------------------------------------------


def test_without_a_rules_file_the_list_is_empty(fleet: Fleet, reader: Api):
    assert reader.get("/rules").json == {
        "rules": [],
        "errors": [],
        "loaded_at": None,
        "disabled": False,
        "disabled_reason": "",
        "silence": {"silent": False, "since": None, "until": None, "by": ""},
        "indicator": "SCH --",
    }


def test_each_rule_is_shown_with_its_state(fleet: Fleet, reader: Api):
    RuleState.objects.create(
        tenant=fleet.tenant,
        name="keep",
        text=TEXT,
        line=3,
        status="backoff",
        failures=2,
        reason="there is no agent forge",
        backoff_until=NOON,
        evaluated_at=NOON,
        fired_at=NOON,
        next_due_at=NOON,
    )
    RuleBook.objects.create(tenant=fleet.tenant, errors=[BAD], loaded_at=NOON)
    shown = reader.get("/rules").json
    (rule,) = shown["rules"]
    assert (rule["name"], rule["line"], rule["status"]) == ("keep", 3, "backoff")
    assert rule["trigger"] == "every 1m"
    assert rule["condition"] == "not alive(forge)"
    assert rule["action"] == "summon forge"
    assert rule["next_due_at"] == rule["backoff_until"] == NOON.timestamp()
    assert shown["errors"] == [BAD]
    assert shown["indicator"] == "SCH 1 !2"


def test_disabled_rules_are_reported_with_the_reason(fleet: Fleet, reader: Api):
    RuleBook.objects.create(tenant=fleet.tenant, disabled_at=NOON, crash="it broke")
    shown = reader.get("/rules").json
    assert (shown["disabled"], shown["disabled_reason"]) == (True, "it broke")
    assert shown["indicator"] == "SCH X"


# --- a dry run ------------------------------------------------------------------------------


def test_a_dry_run_of_the_rules_file_performs_no_action(fleet: Fleet, reader: Api, file: Path):
    fleet.agent("forge")
    file.write_text(f'{TEXT}\nevery 5x => pause forge\n[tell] every 1m => msg forge "x"')
    past = datetime.now(UTC) - timedelta(seconds=5)
    RuleState.objects.create(tenant=fleet.tenant, name="keep", text=TEXT, line=1, next_due_at=past)
    result = reader.post("/rules/test").json
    assert not result["ok"]
    assert [(error["line"], error["code"]) for error in result["errors"]] == [(2, "bad_duration")]
    keep, tell = result["rules"]
    assert (keep["fires"], keep["because"], keep["why_not"]) == (True, "forge is not alive", [])
    assert (tell["fires"], tell["why_not"]) == (False, ["not due: the rule is new or has changed"])
    assert not Message.objects.exists()


def test_an_unsaved_text_of_the_rules_can_be_tested(fleet: Fleet, reader: Api, file: Path):
    file.write_text(TEXT)
    result = reader.post(
        "/rules/test", {"text": "[new] every 2m if alive(all) => pause forge"}
    ).json
    (rule,) = result["rules"]
    assert (rule["name"], rule["condition"], rule["because"]) == ("new", False, "all is not alive")
    assert rule["warnings"][0].startswith('"all" means an agent of that name here')
    assert result["ok"]
    assert file.read_text() == TEXT


@pytest.mark.parametrize(
    "text", ["", "\0", "x" * 20_000, "[", '[a] every 1m => run "\\', "\r\r", "\ud800"]
)
def test_any_text_can_be_tested_as_rules(fleet: Fleet, reader: Api, text: str):
    assert reader.post("/rules/test", {"text": text}).status == 200


def test_a_text_larger_than_a_rules_file_is_refused(fleet: Fleet, reader: Api):
    result = reader.post("/rules/test", {"text": f"{TEXT}\n" + "x\n" * 500_000}).json
    assert (result["ok"], result["rules"]) == (False, [])
    (error,) = result["errors"]
    assert (error["code"], error["line"]) == ("unreadable", 0)
    assert error["problem"] == "the file has more than 1,000,000 bytes"


def test_the_file_of_the_project_is_shown_to_its_own_tenant_only(
    fleet: Fleet, others: Fleet, file: Path
):
    file.write_text(f"{TEXT}\nthe secret plan")
    result = api_of(others.tenant, "read", "nosy").post("/rules/test")
    assert result.json == {"ok": True, "rules": [], "errors": []}


# --- silence --------------------------------------------------------------------------------


def test_silence_is_started_and_ended(fleet: Fleet, api: Api, reader: Api):
    started = api.post("/rules/silence", {"seconds": HOUR}).json
    assert (started["silent"], started["by"]) == (True, "token ci")
    assert abs(started["until"] - now() - HOUR) < 60
    assert reader.get("/rules/silence").json == started
    assert api.delete("/rules/silence").json["silent"] is False
    entries = RunEvent.objects.filter(name__startswith="rules.").order_by("pk")
    assert list(entries.values_list("name", flat=True)) == ["rules.silenced", "rules.heard"]


def test_silence_may_have_no_end_or_an_end(fleet: Fleet, api: Api):
    assert api.post("/rules/silence").json["until"] is None
    end = int(now()) + HOUR
    assert api.post("/rules/silence", {"until": end}).json["until"] == end


@pytest.mark.parametrize(
    ("body", "status"),
    [
        ({"until": 1}, 409),
        ({"seconds": 0}, 409),
        ({"until": 4e9, "seconds": 5}, 400),
        ({"seconds": 253_402_300_799}, 400),
        ({"seconds": -1}, 400),
        ({"unti": 5}, 400),
    ],
)
def test_an_invalid_silence_is_refused(fleet: Fleet, api: Api, body: dict[str, float], status: int):
    assert api.post("/rules/silence", body).status == status
    assert not RuleBook.objects.exists()


def test_a_token_with_the_scope_read_cannot_start_a_silence(fleet: Fleet, reader: Api):
    assert reader.post("/rules/silence").status == 403
    assert reader.delete("/rules/silence").status == 403


# All other permissions that the scope operate needs in a session.
OPERATES = [
    *(f"view_{noun}" for noun in (*NOUNS, "runevent")),
    *(f"change_{noun}" for noun in NOUNS),
]


@pytest.mark.parametrize(
    ("rights", "read", "silenced"),
    [([], 403, 403), (["view_rulestate"], 200, 403), (["view_rulestate", CHANGE], 200, 200)],
)
def test_a_session_needs_the_permissions_on_rules_of_the_admin(
    fleet: Fleet, rights: list[str], read: int, silenced: int
):
    api = Api(client=who_may(*OPERATES, *rights))
    assert api.get("/agents").status == 200
    assert {api.get(path).status for path in ("/rules", "/rules/silence")} == {read}
    assert api.post("/rules/test").status == read
    assert api.post("/rules/silence").status == silenced
    assert RuleBook.objects.exists() == (silenced == 200)
    assert api.delete("/rules/silence").status == silenced


def test_the_number_of_queries_does_not_grow_with_the_rules(
    fleet: Fleet, reader: Api, django_assert_max_num_queries
):
    RuleState.objects.bulk_create(
        RuleState(tenant=fleet.tenant, name=f"r{n}", text=TEXT, line=n, next_due_at=NOON)
        for n in range(200)
    )
    with django_assert_max_num_queries(8):
        assert len(reader.get("/rules").json["rules"]) == 200
    lines = "\n".join(f"[r{n}] every 1m if idle(any) > 1m => release {{idle}}" for n in range(200))
    with django_assert_max_num_queries(10):
        assert len(reader.post("/rules/test", {"text": lines}).json["rules"]) == 200
