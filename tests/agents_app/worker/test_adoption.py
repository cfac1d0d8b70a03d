"""Adoption of containers of dead workers, and runs returned to the queue."""

from datetime import datetime, timedelta
from functools import partial

import pytest
from django.db import OperationalError

from agents_app.database.transactions import in_transaction
from agents_app.launch.workdir import workdir_of
from agents_app.maintenance import reconcile
from agents_app.models import Run, RunOutput, Worker, WorkItem
from agents_app.output.buffer import Segment
from agents_app.output.transcript import Transcript, insert_output
from agents_app.runners.containers.engine import ContainerState, EngineUnavailable
from agents_app.runs import dispatch
from agents_app.runs.job import Ending, Job
from agents_app.worker import adoption, execute
from agents_app.worker.execute import Host
from agents_app.worker.lease import boot_id, this_host
from tests.agents_app.executing import printed
from tests.agents_app.fleet import NOON, Fleet, at, event_names, live_run, running
from tests.parts.docker_part import IMAGE, DockerEngine

BOX = {"type": "container", "image": "some/image:1"}
HERE = {"host": "here", "boot_id": boot_id()}


@pytest.fixture
def engine(monkeypatch: pytest.MonkeyPatch) -> dict[str, object]:
    """The outside world: what the engine would say of any container."""
    said: dict[str, object] = {"state": ContainerState(True, 0, False)}
    monkeypatch.setattr(adoption.DOCKER, "state", lambda _: said["state"])
    monkeypatch.setattr(adoption.DOCKER, "environment", lambda _: {})
    monkeypatch.setattr(reconcile, "end_container", lambda *_: said.get("removed", True))
    return said


def contained(fleet: Fleet, container: str = "c1", **worker: object) -> Run:
    agent = fleet.agent(runtime=BOX)
    run = running(fleet, agent, **worker)
    Run.objects.filter(pk=run.pk).update(container=container)
    return Run.objects.select_related("worker", "agent", "work_item").get(pk=run.pk)


def ended(now=NOON, **columns: object) -> dict[str, object]:
    return {"ended_at": now, **HERE, **columns}


def test_a_run_of_a_dead_worker_is_orphaned(fleet: Fleet):
    run = contained(fleet, **ended())
    assert adoption.orphaned_runs() == [run]
    Run.objects.update(worker=fleet.worker())  # elsewhere, and not declared dead
    assert adoption.orphaned_runs() == []
    Run.objects.update(worker=fleet.worker(host=this_host()))  # here, and no such process
    assert adoption.orphaned_runs() == [run]
    Run.objects.update(container="")  # died before it could have gone on alone
    assert adoption.orphaned_runs() == []


def test_one_worker_adopts_a_run_and_has_its_control_before_the_update(
    fleet: Fleet, host: Host, engine: dict[str, object]
):
    run = contained(fleet, **ended())
    assert adoption.adopt(run, host)
    assert run.pk in host.live
    assert Run.objects.get().worker_id == host.worker_id
    assert event_names(run.pk)[-1] == "run.adopted"
    late = Host(fleet.worker().pk, host.clock)
    assert adoption.adopt(run, late) is None
    assert late.live == {}


def test_a_container_on_another_machine_is_left_to_the_workers_there(
    fleet: Fleet, host: Host, engine: dict[str, object]
):
    engine["state"] = None
    run = contained(fleet, **ended())
    assert adoption.adopt(run, host) is None
    assert Run.objects.get().worker_id == run.worker_id


def test_output_goes_on_after_what_is_stored(fleet: Fleet, host: Host):
    run = contained(fleet, **ended())
    stored = [Segment(1, 1, 0.0, b"hello"), Segment(2, 2, 0.0, b"oh"), Segment(3, 1, 0.0, b"you")]
    insert_output(run.tenant_id, run.pk, stored)
    Run.objects.update(worker=host.worker_id)
    transcript = Transcript(run.tenant_id, run.pk, host.worker_id)
    assert transcript.resume() == {1: 8, 2: 2}
    transcript.feed(1, b" there", 0.0)
    transcript.close()
    in_transaction(transcript.store_rest)
    assert list(RunOutput.objects.values_list("seq", flat=True).order_by("seq")) == [1, 2, 3, 4]
    assert transcript.total_bytes == 16


# --- the sweep ------------------------------------------------------------------------------


def test_a_container_run_is_lost_only_if_no_worker_adopts_it_for_a_lease(
    fleet: Fleet, engine: dict[str, object]
):
    run = contained(fleet, **ended())
    assert reconcile.reconcile(at(30), "here")["runs_lost"] == 0
    assert reconcile.reconcile(at(36), "here")["runs_lost"] == 1
    run.refresh_from_db()
    assert (run.state, run.error) == ("lost", "lost: its worker died")


def test_a_run_is_not_lost_while_the_state_of_its_container_is_unknown(
    fleet: Fleet, engine: dict[str, object]
):
    contained(fleet, **ended())
    engine["removed"] = False
    assert reconcile.reconcile(at(hours=0.1), "here")["runs_lost"] == 0
    engine["removed"] = True
    assert reconcile.reconcile(at(hours=0.2), "here")["runs_lost"] == 1


def test_after_a_reboot_a_container_run_is_lost_at_once(fleet: Fleet, engine: dict[str, object]):
    contained(fleet, **ended(boot_id="before"))
    assert reconcile.reconcile(at(1), "here")["runs_lost"] == 1


def test_a_container_on_another_machine_counts_as_alive_until_its_deadline(
    fleet: Fleet, engine: dict[str, object]
):
    contained(fleet, **ended())
    assert reconcile.reconcile(at(minutes=5), "elsewhere")["runs_lost"] == 0
    dispatch.request_stop(list(Run.objects.all()), at(minutes=6), "enough")
    assert reconcile.reconcile(at(minutes=6), "elsewhere")["runs_lost"] == 1


# --- work that is given back ----------------------------------------------------------------


def conclude(job: Job, ending: Ending, now: datetime, worker_id: int) -> None:
    in_transaction(partial(execute.WITHOUT_RESULT[ending.state], job, ending, now, worker_id))


def test_work_without_an_engine_waits_with_the_reason_and_keeps_its_attempts(fleet: Fleet):
    agent = fleet.agent(runtime=BOX)
    item = fleet.enqueue(agent)
    for number in range(3):
        now = at(10 * number)
        job = fleet.start(item, now)
        worker_id = fleet.workers[0].pk
        ending = Ending("unavailable", error="docker_unavailable: no answer")
        conclude(job, ending, now, worker_id)
        item.refresh_from_db()
        assert (item.state, item.attempts) == (WorkItem.State.QUEUED, 0)
        assert item.reason == "docker_unavailable: no answer"
        assert item.available_at == now + timedelta(seconds=1)
        assert Run.objects.filter(slot__isnull=False).count() == 0
        assert dispatch.admit_waiting(agent.pk, now) == 0
        assert dispatch.admit_waiting(agent.pk, now + timedelta(seconds=2)) == 1
    # The live one, and one that says what happened to all before it.
    assert list(Run.objects.order_by("pk").values_list("state", flat=True)) == [
        "stopped",
        "pending",
    ]
    assert live_run(item).attempt == 1


def test_a_worker_that_no_longer_owns_a_run_does_not_return_it_to_the_queue(fleet: Fleet):
    item = fleet.enqueue(fleet.agent())
    job = fleet.start(item)
    ending = Ending("unavailable", error="docker_unavailable: no answer")
    other = fleet.worker().pk
    conclude(job, ending, NOON, other)
    item.refresh_from_db()
    assert item.state == WorkItem.State.ADMITTED
    assert live_run(item).state == "running"


def test_a_run_whose_container_vanished_is_lost_by_its_own_worker(fleet: Fleet):
    agent = fleet.agent(runtime=BOX, on_lost="retry")
    job = fleet.start(fleet.enqueue(agent))
    ending = Ending("lost", error="lost: the container was removed, but not by Drover")
    conclude(job, ending, NOON, fleet.workers[0].pk)
    assert Run.objects.get().state == "lost"
    assert WorkItem.objects.get().state == WorkItem.State.QUEUED


def test_an_unavailable_engine_does_not_stop_the_worker(fleet: Fleet, host: Host, monkeypatch):
    def away(*_: object) -> None:
        raise EngineUnavailable("no answer")

    monkeypatch.setattr(adoption.DOCKER, "find", away)
    fleet.agent(runtime=BOX)
    assert adoption.uses_containers()
    with pytest.raises(EngineUnavailable):
        adoption.sweep()


def test_output_of_pre_hooks_is_not_counted_as_output_of_the_program(fleet: Fleet):
    run = contained(fleet, **ended())
    said = [(0, b"[hooks.pre: make]\n"), (1, b"made\n"), (0, b"[hooks.pre: done]\n")]
    said += [(1, b"one\n"), (2, b"oh\n")]
    pieces = [Segment(seq, stream, 0.0, data) for seq, (stream, data) in enumerate(said, 1)]
    insert_output(run.tenant_id, run.pk, pieces)
    transcript = Transcript(run.tenant_id, run.pk, run.worker_id or 0)
    assert transcript.resume() == {1: 4, 2: 3}
    assert transcript.total_bytes == sum(len(data) for _, data in said)


def test_the_token_of_an_adopted_run_is_removed_from_its_output(
    fleet: Fleet, host: Host, engine: dict[str, object], monkeypatch
):
    run = contained(fleet, **ended())
    token = f"drover_run_{run.pk}_secret"
    monkeypatch.setattr(adoption.DOCKER, "environment", lambda _: {"DROVER_RUN_TOKEN": token})
    assert adoption._job(run, token).token == token


def test_an_adoption_that_fails_leaves_the_run_to_other_workers(
    fleet: Fleet, host: Host, engine: dict[str, object], monkeypatch
):
    def broken(*_: object) -> bool:
        raise OperationalError("gone")

    monkeypatch.setattr(adoption, "_take_over", broken)
    with pytest.raises(OperationalError):
        adoption.adopt(contained(fleet, **ended()), host)
    assert host.live == {}


# --- the end of a run whose worker dies before it can record it -------------------------------


class Killed(BaseException):
    """Stands for SIGKILL: no handler of the worker runs."""


def dies_before_the_end_is_recorded(job: Job, _ending, _transcript, host: Host, _hand_over) -> None:
    Run.objects.filter(pk=job.run_id).update(container=host.live[job.run_id].container)
    raise Killed


@pytest.mark.parametrize(
    ("script", "state", "exit_code"),
    [
        ("echo said; printf found >$AL_SIGNAL_DIR/return", "succeeded", 0),
        ("echo said; exit 3", "failed", 3),
    ],
)
def test_a_run_that_ended_before_its_worker_died_keeps_its_result(
    fleet: Fleet,
    host: Host,
    docker_engine: DockerEngine,
    monkeypatch: pytest.MonkeyPatch,
    script: str,
    state: str,
    exit_code: int,
):
    """Guard: container and workdir stay until the end is recorded. If the worker removes them
    before, the next worker finds no container, and the run is lost with its output."""
    monkeypatch.setattr(adoption.DOCKER, "_url", docker_engine.url)
    monkeypatch.setattr(adoption.DOCKER, "_client", None)
    runtime = {"type": "container", "image": IMAGE, "memory": "64m"}
    agent = fleet.agent(runtime=runtime, command=["sh", "-c", script])
    run = live_run(fleet.enqueue(agent))
    first = Host(fleet.worker(**HERE).pk, host.clock)
    with monkeypatch.context() as patched, pytest.raises(Killed):
        patched.setattr(execute, "_finish", dies_before_the_end_is_recorded)
        execute.execute(run.pk, first)
    Worker.objects.filter(pk=first.worker_id).update(ended_at=NOON)
    [orphan] = adoption.orphaned_runs()
    rest = adoption.adopt(orphan, host)
    assert rest is not None
    execute.execute_adopted(*rest.args)
    run.refresh_from_db()
    assert (run.state, run.exit_code, run.worker_id) == (state, exit_code, host.worker_id)
    assert printed(run.pk) == "said\n"
    assert run.return_value == ("found" if exit_code == 0 else "")
    assert adoption.DOCKER.find(f"drover.trace={run.trace_id}") == []
    assert not workdir_of(run.pk)[0].exists()


def test_a_worker_that_was_declared_dead_leaves_the_container_to_its_adopter(
    fleet: Fleet, host: Host, monkeypatch: pytest.MonkeyPatch
):
    """Guard: only after the end is recorded is the container removed. A worker whose run was
    adopted records nothing, and must not take the container away from the adopter."""
    removed: list[str] = []
    monkeypatch.setattr(execute.CONTAINER_RUNNER, "remove", removed.append)
    job = fleet.start(fleet.enqueue(fleet.agent(runtime=BOX)))
    execute._remove_remains(job, "c1")
    assert removed == []
    fleet.finish(job)
    execute._remove_remains(job, "c1")
    assert removed == ["c1"]


def test_a_stop_that_was_requested_before_an_adoption_is_passed_on(
    fleet: Fleet, host: Host, engine: dict[str, object]
):
    """Guard: a container that ended because of the stop would otherwise count as failed."""
    run = contained(fleet, **ended())
    dispatch.request_stop([run], at(1), "stopped by ann")
    run.refresh_from_db()
    assert adoption.adopt(run, host)
    request = host.live[run.pk].request
    assert request is not None and request.reason == "stopped by ann"
