"""/v1/rules: what became of them, what they would do, and silence."""

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


def test_where_there_are_no_rules_the_answer_is_empty(fleet: Fleet, reader: Api):
    assert reader.get("/rules").json == {
        "rules": [],
        "errors": [],
        "loaded_at": None,
        "disabled": False,
        "disabled_reason": "",
        "silence": {"silent": False, "since": None, "until": None, "by": ""},
        "indicator": "SCH --",
    }


def test_each_rule_is_shown_with_what_became_of_it(fleet: Fleet, reader: Api):
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


def test_rules_that_are_not_obeyed_say_so(fleet: Fleet, reader: Api):
    RuleBook.objects.create(tenant=fleet.tenant, disabled_at=NOON, crash="it broke")
    shown = reader.get("/rules").json
    assert (shown["disabled"], shown["disabled_reason"]) == (True, "it broke")
    assert shown["indicator"] == "SCH X"


# --- a dry run ------------------------------------------------------------------------------


def test_the_file_is_tried_and_nothing_is_done(fleet: Fleet, reader: Api, file: Path):
    fleet.agent("forge")
    file.write_text(f'{TEXT}\nevery 5x => pause forge\n[tell] every 1m => msg forge "x"')
    past = datetime.now(UTC) - timedelta(seconds=5)
    RuleState.objects.create(tenant=fleet.tenant, name="keep", text=TEXT, line=1, next_due_at=past)
    tried = reader.post("/rules/test").json
    assert not tried["ok"]
    assert [(error["line"], error["code"]) for error in tried["errors"]] == [(2, "bad_duration")]
    keep, tell = tried["rules"]
    assert (keep["fires"], keep["because"], keep["why_not"]) == (True, "forge is not alive", [])
    assert (tell["fires"], tell["why_not"]) == (False, ["not due: the rule is new or has changed"])
    assert not Message.objects.exists()


def test_an_edit_can_be_tried_before_it_is_saved(fleet: Fleet, reader: Api, file: Path):
    file.write_text(TEXT)
    tried = reader.post("/rules/test", {"text": "[new] every 2m if alive(all) => pause forge"}).json
    (rule,) = tried["rules"]
    assert (rule["name"], rule["condition"], rule["because"]) == ("new", False, "all is not alive")
    assert rule["warnings"][0].startswith('"all" means an agent of that name here')
    assert tried["ok"]
    assert file.read_text() == TEXT


@pytest.mark.parametrize(
    "text", ["", "\0", "x" * 20_000, "[", '[a] every 1m => run "\\', "\r\r", "\ud800"]
)
def test_any_text_can_be_tried(fleet: Fleet, reader: Api, text: str):
    assert reader.post("/rules/test", {"text": text}).status == 200


def test_a_text_that_no_file_could_be_is_not_read(fleet: Fleet, reader: Api):
    tried = reader.post("/rules/test", {"text": f"{TEXT}\n" + "x\n" * 500_000}).json
    assert (tried["ok"], tried["rules"]) == (False, [])
    (error,) = tried["errors"]
    assert (error["code"], error["line"]) == ("unreadable", 0)
    assert error["problem"] == "the file has more than 1,000,000 bytes"


def test_the_file_of_the_project_is_shown_to_its_own_tenant_only(
    fleet: Fleet, others: Fleet, file: Path
):
    file.write_text(f"{TEXT}\nthe secret plan")
    tried = api_of(others.tenant, "read", "nosy").post("/rules/test")
    assert tried.json == {"ok": True, "rules": [], "errors": []}


# --- silence --------------------------------------------------------------------------------


def test_silence_begins_and_ends(fleet: Fleet, api: Api, reader: Api):
    begun = api.post("/rules/silence", {"seconds": HOUR}).json
    assert (begun["silent"], begun["by"]) == (True, "token ci")
    assert abs(begun["until"] - now() - HOUR) < 60
    assert reader.get("/rules/silence").json == begun
    assert api.delete("/rules/silence").json["silent"] is False
    noted = RunEvent.objects.filter(name__startswith="rules.").order_by("pk")
    assert list(noted.values_list("name", flat=True)) == ["rules.silenced", "rules.heard"]


def test_silence_may_have_no_end_or_a_time(fleet: Fleet, api: Api):
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
def test_a_silence_that_makes_no_sense_is_refused(
    fleet: Fleet, api: Api, body: dict[str, float], status: int
):
    assert api.post("/rules/silence", body).status == status
    assert not RuleBook.objects.exists()


def test_who_may_only_read_silences_nobody(fleet: Fleet, reader: Api):
    assert reader.post("/rules/silence").status == 403
    assert reader.delete("/rules/silence").status == 403


# Everything that the API otherwise asks of somebody who is logged in to the admin.
OPERATES = [
    *(f"view_{noun}" for noun in (*NOUNS, "runevent")),
    *(f"change_{noun}" for noun in NOUNS),
]


@pytest.mark.parametrize(
    ("rights", "read", "silenced"),
    [([], 403, 403), (["view_rulestate"], 200, 403), (["view_rulestate", CHANGE], 200, 200)],
)
def test_who_is_logged_in_needs_the_same_rights_on_rules_as_in_the_admin(
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
