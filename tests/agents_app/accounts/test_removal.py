"""Events of the audit remain when a schedule is deleted or an agent is forgotten."""

import pytest

from agents_app.accounts import removal
from agents_app.models import Agent, ResourceLock, Run, RunEvent
from agents_app.reports import AuditPeriod, read_audit
from agents_app.runs import control, dispatch
from agents_app.schedules import edit
from tests.agents_app.fleet import NOON, Fleet, at


@pytest.fixture(autouse=True)
def several_batches(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(removal, "ROWS_IN_ONE_COMMIT", 2)


def stopped_run(fleet: Fleet, agent: Agent) -> Run:
    """A run of a schedule that ann stopped, whose lock bob broke and which carl ran again."""
    fleet.fire(fleet.schedule(agent, name="weekly"))
    job = fleet.start(agent.work_items.get())
    run = Run.objects.get(pk=job.run_id)
    lock = ResourceLock.objects.create(
        tenant=fleet.tenant,
        uri="file:///srv/map",
        run=run,
        holder="reporter",
        held_since=NOON,
        ttl_seconds=60,
        expires_at=at(60),
    )
    control.stop_run(run, "ann", NOON)
    control.break_lock(lock, "bob", NOON)
    fleet.finish(job, "stopped", error="stopped by ann")
    control.pause_agent(agent, "bob", NOON)
    dispatch.enqueue_rerun(run, "carl", NOON)
    return run


def audited(fleet: Fleet) -> list[tuple[str, str, str | None, int | None, str]]:
    return [
        (entry.who, entry.what, entry.agent, entry.run_id, entry.detail)
        for entry in read_audit(fleet.tenant, AuditPeriod())
    ]


def test_the_audit_of_a_deleted_schedule_remains(fleet: Fleet):
    agent = fleet.agent()
    run = stopped_run(fleet, agent)
    schedule = agent.schedules.get()
    before = audited(fleet)
    removal.close_schedule(schedule, "dora", NOON)
    removal.remove_schedule(schedule, "dora", NOON)
    of_run = f"run {run.pk} of weekly: "
    assert audited(fleet) == [
        *(
            (who, what, agent_name, None, f"{of_run}{detail}" if number else detail)
            for who, what, agent_name, number, detail in before
        ),
        ("dora", "schedule.canceled", "reporter", None, "weekly: dora"),
        ("dora", "schedule.deleted", "reporter", None, "weekly: dora"),
    ]
    assert (
        *("ann", "run.stop_requested", "reporter", None),
        f"{of_run}stopped by ann",
    ) in audited(fleet)
    assert ("bob", "lock.broken") in {entry[:2] for entry in audited(fleet)}
    assert not RunEvent.objects.filter(name="run.started").exists()


def test_the_audit_of_a_forgotten_agent_remains(fleet: Fleet):
    agent, other = fleet.agent(), fleet.agent("other")
    run = stopped_run(fleet, agent)
    edit.pause(agent.schedules.get(), "dora", NOON, "a note")
    control.pause_agent(other, "eve", NOON)
    control.drop_work(agent.work_items.get(state="queued"), "dora", NOON)
    before = audited(fleet)
    Agent.objects.filter(pk=agent.pk).update(removed_at=NOON)
    removal.forget_agent(agent, "fred", NOON)

    def kept(name: str | None, number: int | None, detail: str) -> tuple[str | None, None, str]:
        if name == "other":
            return name, None, detail
        return None, None, f"{f'run {run.pk} of ' if number else ''}reporter: {detail}"

    assert audited(fleet) == [
        *((who, what, *kept(*rest)) for who, what, *rest in before),
        ("fred", "agent.forgotten", None, None, "reporter: fred"),
    ]
    assert ("bob", "agent.paused", None, None, "reporter: bob") in audited(fleet)
    assert {entry[1] for entry in before} >= {"lock.broken", "run.stop_requested", "run.rerun"}
    assert not RunEvent.objects.filter(actor="").exists()


def test_the_detail_of_a_kept_event_is_not_longer_than_its_column(fleet: Fleet):
    agent = fleet.agent()
    control.pause_agent(agent, "ann", NOON, "x" * 495)
    Agent.objects.filter(pk=agent.pk).update(removed_at=NOON)
    removal.forget_agent(agent, "bob", NOON)
    kept = RunEvent.objects.get(name="agent.paused")
    assert kept.detail == f"reporter: ann: {'x' * 485}"
