"""On sixty columns nothing is torn: words are wrapped, and what does not fit is a record a row."""

import pytest

from agents_app.accounts.tokens import create_token
from agents_app.models import Delivery, ResourceLock, Scheduler, WebhookSource
from tests.agents_app.fleet import NOON, Fleet, at
from tests.agents_app.management.calling import call
from tests.agents_app.management.on_terminal import ESCAPES

COLUMNS = 60
LISTS = {
    "stat": ("enabled", "1/1", "running"),
    "schedule list": ("weekday-mornings", "active"),
    "queue list": ("manual", "operator"),
    "deliveries list": ("pull_request.synchronize", "matched"),
    "locks list": ("file:///srv/shared/reports/2026/march.csv", "quarterly-reporter"),
    "tenant list": ("default", "enabled"),
    "token list": ("dashboard", "read"),
    "schedule history weekday-mornings": ("skipped",),
}


@pytest.fixture
def busy(fleet: Fleet, monkeypatch: pytest.MonkeyPatch) -> Fleet:
    """Something in every list, with names as long as people make them."""
    monkeypatch.setenv("COLUMNS", str(COLUMNS))
    monkeypatch.setenv("NO_COLOR", "1")
    agent = fleet.agent("quarterly-reporter")
    schedule = fleet.schedule(agent, name="weekday-mornings", text="every weekday at 09:00")
    run_id = fleet.start(fleet.enqueue(agent)).run_id
    fleet.fire(schedule)
    fleet.enqueue(agent, requested_by="operator with a long name", prompt="write about the quarter")
    source = WebhookSource.objects.create(tenant=fleet.tenant, name="github", type="github")
    Delivery.objects.create(
        **{"tenant": fleet.tenant, "source": source, "provider": "github", "delivery_id": "d-1"},
        **{"event": "pull_request", "action": "synchronize", "outcome": "matched", "matched": 1},
        **{"received_at": NOON, "headers": "{}", "decisions": "[]", "body": b"{}"},
    )
    ResourceLock.objects.create(
        **{"tenant": fleet.tenant, "uri": "file:///srv/shared/reports/2026/march.csv"},
        **{"holder": agent.name, "run_id": run_id, "held_since": NOON, "ttl_seconds": 60},
        expires_at=at(days=36_500),
    )
    create_token(fleet.tenant, "dashboard", "read", "ann", NOON)
    return fleet


@pytest.mark.parametrize("command", LISTS)
def test_every_list_fits_and_keeps_its_words_whole(busy: Fleet, command: str):
    said = call(*command.split(), terminal=True)
    assert said.code == 0, said.err
    text = ESCAPES.sub("", said.out)
    assert [line for line in text.splitlines()[1:] if len(line) > COLUMNS] == []
    assert [word for word in LISTS[command] if word not in text] == []


def test_a_table_that_would_be_torn_is_shown_as_records(busy: Fleet):
    said = call("locks", "list", terminal=True)
    assert "holder  quarterly-reporter" in ESCAPES.sub("", said.out)
    assert "\u2500" not in said.out


def test_a_long_name_is_wrapped_at_its_hyphens_rather_than_shown_as_a_record(
    busy: Fleet, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setenv("COLUMNS", "100")
    busy.agent("nightly-financial-reconciliation-of-all-regional-subsidiaries")
    lines = ESCAPES.sub("", call("stat", terminal=True).out).splitlines()
    assert [line for line in lines if len(line.rstrip()) > 100] == []
    assert any(line.split()[:2] == ["agent", "state"] for line in lines)
    (begin,) = [number for number, line in enumerate(lines) if line.startswith("nightly-")]
    first, second = lines[begin].split()[0], lines[begin + 1].strip()
    assert f"{first}{second}" == "nightly-financial-reconciliation-of-all-regional-subsidiaries"


def test_a_wider_terminal_has_the_table(busy: Fleet, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("COLUMNS", "160")
    assert "\u2500" in call("locks", "list", terminal=True).out


def test_the_state_of_the_fleet_fits_a_hundred_columns_with_one_line_for_each_agent(
    busy: Fleet, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setenv("COLUMNS", "100")
    busy.worker()
    busy.agent("dependency-updater", over_budget_until=at(days=2))
    busy.agent("b", paused_at=NOON, pause_note="until the finance department has a key " * 4)
    Scheduler.objects.update_or_create(
        pk=1, defaults={"state": "running", "started_at": NOON, "last_check_at": NOON}
    )
    lines = ESCAPES.sub("", call("stat", terminal=True).out).splitlines()
    assert [line for line in lines if len(line.rstrip()) > 100] == []
    names = [line.split()[0] for line in lines if " 0/100" in line or " 1/100" in line]
    assert names == ["b", "dependency-updater", "quarterly-reporter"]
    (budget,) = [line for line in lines if line.startswith("dependency-updater:")]
    assert "the agent's budget is used up until 2026-03-04" in budget
