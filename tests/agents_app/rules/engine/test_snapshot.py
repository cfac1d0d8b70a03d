"""The snapshot of the fleet: the state of agents, and a constant number of queries."""

from collections.abc import Iterable
from dataclasses import replace
from datetime import date, timedelta
from decimal import Decimal
from importlib import import_module
from typing import Any

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from agents_app.database.sql import fetch_each
from agents_app.models import Run, RunOutput, Usage
from agents_app.output.transcript import Transcript
from agents_app.rules.engine.snapshot import read_fleet
from agents_app.rules.language.analysis import RequiredData, named_agents, required_data
from agents_app.rules.language.parse import parse_line
from agents_app.rules.language.rule import AgentState, Rule
from tests.agents_app.fleet import Fleet, running
from tests.agents_app.rules.engine.rules_clock import Rules, at

NOTHING = RequiredData(idle=False, queued=False, failed_within=(), spent=frozenset())
EVERYTHING = RequiredData(
    idle=True, queued=True, failed_within=(60, 3600), spent=frozenset({"forge"})
)


def read(text: str) -> Rule:
    rule = parse_line(text)
    assert rule is not None
    return rule


def look(
    fleet: Fleet, clock: str = "12:10", needs: RequiredData = EVERYTHING
) -> dict[str, AgentState]:
    return dict(read_fleet(fleet.tenant, needs, at(clock)).snapshot.agents)


def printed(run: Run, clock: str, seq: int = 1) -> None:
    RunOutput.objects.create(
        tenant_id=run.tenant_id, run=run, seq=seq, stream=1, at=at(clock), data=b"."
    )


def test_an_agent_is_idle_since_the_last_activity_of_any_of_its_runs(fleet: Fleet):
    agent = fleet.agent("forge", scale=2)
    first, second = running(fleet, agent, at("12:00")), running(fleet, agent, at("12:00"))
    assert look(fleet)["forge"].idle_seconds == 600
    printed(first, "12:03", seq=1)
    printed(first, "12:04", seq=2)
    assert look(fleet)["forge"].idle_seconds == 360
    Run.objects.filter(pk=second.pk).update(signaled_at=at("12:09"))
    assert look(fleet)["forge"].idle_seconds == 60


def test_a_run_that_no_worker_has_started_makes_its_agent_alive(fleet: Fleet):
    fleet.enqueue(fleet.agent("forge"), at("12:09"))
    fleet.agent("beacon")
    states = look(fleet, needs=NOTHING)
    assert (states["forge"].alive, states["beacon"].alive) == (True, False)


def test_failures_are_counted_by_window_and_queued_work_is_counted(fleet: Fleet):
    agent = fleet.agent("forge", work_queue_size=100)
    for clock in ("11:00", "11:30", "12:09:30"):
        fleet.finish(fleet.start(fleet.enqueue(agent, at(clock)), at(clock)), "failed", at(clock))
    for _ in range(3):
        fleet.enqueue(agent, at("12:09"))
    state = look(fleet)["forge"]
    assert dict(state.failed) == {60: 1, 3600: 2}
    assert state.queued == 2  # one of the three has the slot


def test_failures_are_counted_for_more_windows_than_a_query_has_columns(fleet: Fleet):
    agent = fleet.agent("forge")
    for clock in ("11:40", "12:09:30"):
        fleet.finish(fleet.start(fleet.enqueue(agent, at(clock)), at(clock)), "failed", at(clock))
    windows = tuple(range(1, 2101))
    failed = look(fleet, needs=replace(NOTHING, failed_within=windows))["forge"].failed
    # The runs ended 30 and 1800 seconds ago; a run exactly that old is outside the window.
    assert [failed.get(seconds, 0) for seconds in windows] == [0] * 30 + [1] * 1770 + [2] * 300


def test_the_spent_percentage_is_that_of_the_tightest_cap(fleet: Fleet):
    agent = fleet.agent("forge", budget={"tokens_per_day": 1000, "usd_per_day": 4.0})
    today = date(2026, 3, 2)
    Usage.objects.create(tenant=fleet.tenant, agent=agent, day=today, tokens=100, cost_usd=1)
    assert look(fleet)["forge"].spent_percent == 25
    fleet.tenant.settings = {"budget": {"usd_per_month": 10.0}, "timezone": "UTC"}
    yesterday = today - timedelta(days=1)
    other = fleet.agent("beacon")
    Usage.objects.create(
        tenant=fleet.tenant, agent=other, day=yesterday, tokens=0, cost_usd=Decimal(4)
    )
    assert look(fleet)["forge"].spent_percent == 50
    assert look(fleet, needs=NOTHING)["forge"].spent_percent is None


def test_removed_agents_are_not_in_the_snapshot(fleet: Fleet):
    fleet.agent("gone", removed_at=at("12:00"))
    assert look(fleet) == {}


def test_output_that_is_not_stored_yet_counts_as_activity(
    fleet: Fleet, monkeypatch: pytest.MonkeyPatch
):
    """The end of a very long output is kept in memory, and still counts as activity."""
    run = running(fleet, fleet.agent("forge"), at("12:00"))
    monkeypatch.setattr("agents_app.output.buffer.HEAD_BYTES", 10)
    assert run.worker_id is not None
    transcript = Transcript(run.tenant_id, run.pk, run.worker_id)
    transcript.feed(1, b"0123456789", at("12:01").timestamp())
    transcript.flush()
    transcript.feed(1, b"more", at("12:08").timestamp())
    transcript.flush()
    assert look(fleet)["forge"].idle_seconds == 120


# --- number of queries ----------------------------------------------------------------------


def _queries(rules: Rules, fleet: Fleet, count: int, first: str, plain: list[str]) -> int:
    """The number of queries of a tick at which three rules per agent are due."""
    lines = []
    for number in range(count):
        agent = fleet.agent(f"{first}{number}")
        printed(running(fleet, agent, at("11:00")), "11:30")
        lines += [
            f"every 1m if idle({agent.name}) > 1m => release {agent.name}",
            f"every 1m if queue({agent.name}) > 1 and failed({agent.name}) > 0 in 1h => pause all",
            f"at * * * * * if budget({agent.name}) > 1% => pause {agent.name}",
        ]
    rules.save(*lines)
    rules.holding = True
    start = at("12:00:30")
    rules.tick(start)
    plain.clear()
    with CaptureQueriesContext(connection) as seen:
        fired = rules.tick(start + timedelta(seconds=60))
    assert len(fired) >= count
    return len(seen) + len(plain)


def test_a_tick_has_the_same_number_of_queries_for_any_number_of_rules(
    rules: Rules, fleet: Fleet, monkeypatch: pytest.MonkeyPatch
):
    plain: list[str] = []
    for module in ("rules.engine.snapshot", "database.bulk"):
        _counted_each(monkeypatch, f"agents_app.{module}.fetch_each", plain)
    _counted(monkeypatch, "agents_app.rules.engine.tick.fetch_all", plain)
    few = _queries(rules, fleet, 2, "a", plain)
    many = _queries(rules, fleet, 40, "b", plain)
    assert few == many < 15


def _counted(monkeypatch: pytest.MonkeyPatch, name: str, seen: list[str]) -> None:
    """Count plain SQL as well, which Django does not."""
    module, _, function = name.rpartition(".")
    original = getattr(import_module(module), function)

    def counted(sql: str, values: Any) -> Any:
        seen.append(sql)
        return original(sql, values)

    monkeypatch.setattr(name, counted)


def _counted_each(monkeypatch: pytest.MonkeyPatch, name: str, seen: list[str]) -> None:
    def counted(queries: Iterable[tuple[str, Any]]) -> Any:
        asked = list(queries)
        seen.extend(sql for sql, _ in asked)
        return fetch_each(asked)

    monkeypatch.setattr(name, counted)


# --- required data --------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("every 1m if not alive(a,b) => summon c", ("a", "b", "c")),
        ("every 1m if alive(b,a) and queue(c) > 1 => release b,d", ("b", "a", "c", "d")),
        ("every 1m if idle(all) > 1m => release {idle}", ()),
        ('every 1m if idle(a) > 1m => msg b,c "x"', ("a", "b", "c")),
        ("every 1m if queue(a) > 1 => scale b 2", ("a", "b")),
        ('every 1m => run "true"', ()),
        ("every 1m => pause all", ()),
    ],
)
def test_the_named_agents_of_a_rule_are_in_its_order(text: str, names: tuple[str, ...]):
    assert named_agents(read(text)) == names


def test_only_data_that_conditions_need_is_required():
    assert required_data([read("every 1m if alive(a) => release a")]) == NOTHING
    asked = required_data(
        [
            read("every 1m if failed(a) > 1 in 1h and failed(a) > 0 in 1m => pause a"),
            read("every 1m if idle(any) > 1h and queue(a) > 1 => pause a"),
            read("every 1m if budget(forge) > 1% => pause a"),
        ]
    )
    assert asked == EVERYTHING
