"""Creates running runs without a worker, and their tokens."""

from datetime import UTC, datetime

from agents_app.database.transactions import in_transaction
from agents_app.models import Agent, Run, Trigger, Worker
from agents_app.runs import dispatch, lifecycle
from agents_app.runs.dispatch import Request
from tests.benchmarks.inside.fleet import write_agents


def write(runs: int) -> list[str]:
    write_agents(1, runs, ["true"])
    agent, now = Agent.objects.get(), datetime.now(UTC)
    worker = Worker.objects.create(
        name="bench",
        host="nowhere",
        boot_id="x",
        pid=1,
        pid_started=0,
        concurrency=runs,
        started_at=now,
        lease_until=now,
    )
    for _ in range(runs):
        dispatch.enqueue(Request(agent.tenant_id, agent.pk, Trigger.MANUAL), now)
    pending = Run.objects.filter(state=Run.State.PENDING).values_list("pk", flat=True)
    jobs = [
        in_transaction(lambda key=key: lifecycle.start_run(key, worker.pk, now)) for key in pending
    ]  # type: ignore[misc]
    return [job.token for job in jobs if job is not None]
