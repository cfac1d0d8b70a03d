"""A small fleet for tests of the core: real rows, a clock that is passed in, no processes."""

import getpass
import tempfile
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any

from agents_app.database.transactions import in_transaction
from agents_app.models import Agent, Firing, Run, Schedule, Tenant, Trigger, Worker, WorkItem
from agents_app.runs import dispatch, lifecycle
from agents_app.runs.dispatch import Request
from agents_app.runs.job import Ending, Job
from agents_app.schedules import firings

# A Monday at noon, far from any clock change.
NOON = datetime(2026, 3, 2, 12, 0, tzinfo=UTC)
# Programs of tests lie and leave notes in the directories of pytest, which is no part of a sandbox.
NOTES_ALLOWED = {"write": [f"{tempfile.gettempdir()}/pytest-of-{getpass.getuser()}"]}


def at(seconds: float = 0, *, minutes: float = 0, hours: float = 0, days: float = 0) -> datetime:
    """A moment counted from noon."""
    return NOON + timedelta(seconds=seconds, minutes=minutes, hours=hours, days=days)


@dataclass
class Fleet:
    tenant: Tenant
    workers: list[Worker] = field(default_factory=list)

    def agent(self, name: str = "reporter", **columns: Any) -> Agent:
        values: dict[str, Any] = {"command": ["true"], "revision": 1, **columns}
        values["runtime"] = {"sandbox": NOTES_ALLOWED, **values.get("runtime", {})}
        return Agent.objects.create(tenant=self.tenant, name=name, **values)

    def schedule(self, agent: Agent, expression: str = "* * * * *", **columns: Any) -> Schedule:
        values: dict[str, Any] = {"name": "main", "next_fire_at": NOON, **columns}
        return Schedule.objects.create(
            tenant=self.tenant, agent=agent, expression=expression, **values
        )

    def worker(self, **columns: Any) -> Worker:
        values: dict[str, Any] = {
            "name": f"worker-{len(self.workers)}",
            "host": "elsewhere",
            "boot_id": "another",
            "pid": 1,
            "pid_started": 0.0,
            "concurrency": 4,
            "started_at": NOON,
            "lease_until": at(hours=1),
            **columns,
        }
        self.workers.append(Worker.objects.create(**values))
        return self.workers[-1]

    def firing(self, schedule: Schedule, due_at: datetime = NOON) -> Firing:
        return Firing.objects.create(
            tenant=self.tenant,
            schedule=schedule,
            due_at=due_at,
            recorded_at=due_at,
            decide_at=due_at,
        )

    # --- what the verbs do, in short ------------------------------------------------------------

    def enqueue(self, agent: Agent, now: datetime = NOON, **values: Any) -> WorkItem:
        """Enqueue a manual request for a run."""
        trigger = values.pop("trigger", Trigger.MANUAL)
        return dispatch.enqueue(Request(self.tenant.pk, agent.pk, trigger, **values), now)

    def fire(self, schedule: Schedule, now: datetime = NOON) -> Firing:
        """The schedule is due at this very moment; the firing with its outcome."""
        firing = self.firing(schedule, now)
        firings.decide_firings(now)
        firing.refresh_from_db()
        return firing

    def start(self, item: WorkItem, now: datetime = NOON, worker: Worker | None = None) -> Job:
        """A worker starts the unfinished run of the item; an ended worker before its end."""
        run = live_run(item)
        worker = worker or self._some_worker()
        row = Worker.objects.filter(pk=worker.pk)
        if worker.ended_at is not None:
            row.update(ended_at=None)
        job = in_transaction(lambda: lifecycle.start_run(run.pk, worker.pk, now))
        if worker.ended_at is not None:
            row.update(ended_at=worker.ended_at)
        assert job is not None, f"{run} is {run.state}"
        return job

    def finish(
        self, job: Job, state: str = "succeeded", now: datetime = NOON, **how: Any
    ) -> Job | None:
        """Its worker reports how the run ended; what is next comes back."""
        hand_over = how.pop("hand_over", False)
        worker_id = how.pop("worker_id", None) or worker_of(job)
        ending = Ending(state, **how)
        return in_transaction(
            lambda: lifecycle.finish_run(job, ending, now, worker_id, hand_over=hand_over)
        )

    def _some_worker(self) -> Worker:
        return self.workers[0] if self.workers else self.worker()


def running(fleet: Fleet, agent: Agent, now: datetime = NOON, **worker: Any) -> Run:
    """A run that a worker with these columns has started."""
    job = fleet.start(fleet.enqueue(agent, now), now, fleet.worker(**worker))
    return Run.objects.get(pk=job.run_id)


def live_run(item: WorkItem) -> Run:
    return Run.objects.get(work_item=item, slot__isnull=False)


def worker_of(job: Job) -> int:
    worker_id = Run.objects.values_list("worker_id", flat=True).get(pk=job.run_id)
    assert worker_id is not None
    return worker_id


def run_states(agent: Agent) -> list[str]:
    """Of all runs of the agent, in the order they came to be."""
    return list(agent.runs.order_by("id").values_list("state", flat=True))


def work_states(agent: Agent) -> list[str]:
    return list(agent.work_items.order_by("id").values_list("state", flat=True))


def event_names(run_id: int) -> list[str]:
    run = Run.objects.get(pk=run_id)
    return list(run.events.order_by("id").values_list("name", flat=True))
