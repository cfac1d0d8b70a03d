"""Rules of every tenant are evaluated; a tenant whose turn takes long delays no other."""

import os
import threading
from collections.abc import Iterator
from datetime import datetime
from pathlib import Path

import pytest

from agents_app.accounts import tenants
from agents_app.maintenance import DUTIES, duties
from agents_app.maintenance.tenant_turns import TenantTurns
from agents_app.models import RuleBook, RuleState, Tenant, WorkItem
from agents_app.rules.engine.executor import ActionExecutor
from tests.agents_app.fleet import NOON, Fleet, at
from tests.parts.waiting import wait_for

pytestmark = pytest.mark.django_db(transaction=True)
RULES = DUTIES["agents_app.tasks.obey_rules"]


def new_tenant(name: str, tmp_path: Path, rules: str) -> Fleet:
    project = tmp_path / name
    project.mkdir()
    (project / "scheduler.rules").write_text(rules)
    return Fleet(tenants.create_tenant(name, "ann", NOON, str(project))[0])


@pytest.fixture(autouse=True)
def _own_threads(durable_fleet: Fleet, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    turns = TenantTurns(duties._evaluate_rules_of_tenant)
    monkeypatch.setattr(duties, "_RULES_OF_TENANTS", turns)
    yield
    turns.pool.shutdown()


def tick(*seconds: int) -> None:
    """Evaluate the rules of all tenants at these times after noon."""
    for second in seconds:
        RULES(at(second))
        wait_for(lambda: not duties._RULES_OF_TENANTS.running, 10)


def test_each_tenant_has_its_own_rules_and_summons_only_its_own_agents(tmp_path: Path):
    rule = "[wake] every 1m => summon forge\n"
    acme = new_tenant("acme", tmp_path, rule)
    other = new_tenant("other", tmp_path, "# none\n")
    for fleet in (acme, other):
        fleet.agent("forge")
    tick(*range(0, 70, 10))
    wait_for(lambda: WorkItem.objects.exists(), 10)
    assert list(WorkItem.objects.values_list("tenant__name", "agent__name")) == [("acme", "forge")]
    assert list(RuleState.objects.values_list("tenant__name", "name")) == [("acme", "wake")]


def test_the_file_of_metateam_is_read_where_there_is_no_other(tmp_path: Path):
    acme = new_tenant("acme", tmp_path, "")
    project = Path(acme.tenant.project)
    (project / "scheduler.rules").unlink()
    (project / ".crew").mkdir()
    (project / ".crew" / "scheduler.rules").write_text("[a] every 1m => pause forge\n")
    tick(0)
    assert RuleState.objects.filter(tenant=acme.tenant, name="a").exists()


def test_a_rules_file_that_is_a_fifo_or_a_link_out_of_the_project_is_an_error(tmp_path: Path):
    pipe = new_tenant("pipe", tmp_path, "")
    link = new_tenant("link", tmp_path, "")
    fine = new_tenant("fine", tmp_path, "[a] every 1m => pause forge\n")
    for fleet in (pipe, link):
        (Path(fleet.tenant.project) / "scheduler.rules").unlink()
    os.mkfifo(Path(pipe.tenant.project) / "scheduler.rules")
    theirs = Path(fine.tenant.project) / "scheduler.rules"
    (Path(link.tenant.project) / "scheduler.rules").symlink_to(theirs)
    tick(0)
    errors = {book.tenant.name: book.errors for book in RuleBook.objects.all()}
    assert errors["fine"] == []
    assert errors["pipe"][0]["problem"].endswith("it is not a regular file")
    assert "symlink out of the project" in errors["link"][0]["problem"]
    assert list(RuleState.objects.values_list("tenant__name", flat=True)) == ["fine"]


def test_commands_of_rules_run_in_the_project_of_their_tenant(tmp_path: Path):
    acme = new_tenant("acme", tmp_path, '[where] every 1m => run "pwd > where.txt"\n')
    tick(*range(0, 70, 10))
    written = Path(acme.tenant.project) / "where.txt"
    wait_for(lambda: written.exists() and written.read_text(), 20)
    assert written.read_text().strip() == acme.tenant.project
    wait_for(lambda: RuleState.objects.get().held_by == "", 20)


def test_a_slow_turn_delays_no_other_tenant_and_does_not_overlap_itself():
    may_end, begun, done = threading.Event(), list[str](), list[str]()

    def perform(name: str, _now: datetime) -> None:
        begun.append(name)
        if name == "slow":
            assert may_end.wait(60)
        if name == "broken":
            raise ValueError("no")
        done.append(name)

    turns = TenantTurns(perform, threads=2)
    try:
        assert turns.submit("slow", NOON)
        assert turns.submit("broken", NOON)
        assert turns.submit("quick", NOON)
        wait_for(lambda: done == ["quick"], 10)
        assert not turns.submit("slow", at(10))
        wait_for(lambda: turns.submit("quick", at(10)), 10)
        wait_for(lambda: done == ["quick", "quick"], 10)
        assert begun.count("slow") == 1
    finally:
        may_end.set()
        turns.pool.shutdown()


def test_each_tenant_has_its_own_places_for_commands():
    """Long commands of one tenant must not keep those of another waiting."""
    executor = ActionExecutor(Path("/"), lambda: NOON)
    mine, theirs = executor._slots_of(1), executor._slots_of(2)
    assert mine is executor._slots_of(1)
    assert mine is not theirs


def test_rules_of_a_disabled_tenant_are_not_read(tmp_path: Path):
    acme = new_tenant("acme", tmp_path, "[a] every 1m => pause forge\n")
    tenants.disable_tenant(acme.tenant, "ann", NOON)
    duties._evaluate_rules_of_tenant("acme", NOON)
    assert not RuleBook.objects.filter(tenant__name="acme").exists()
    assert Tenant.objects.filter(name="acme").exists()
