"""Journal entries about runs."""

from datetime import datetime

from agents_app.events import journal
from agents_app.models import Run
from agents_app.runs.job import Job


def run_entry(
    name: str, run: Job | Run, now: datetime, detail: str = "", actor: str = ""
) -> journal.JournalEntry:
    run_id = run.run_id if isinstance(run, Job) else run.pk
    ids = (run.tenant_id, run.agent_id, run_id)
    return journal.JournalEntry(name, now, *ids, detail, run.trace_id, _log_context(run), actor)


def _log_context(run: Job | Run) -> dict[str, object]:
    """A row has the name of its agent and its firing only in other rows, which are not read."""
    context: dict[str, object] = {"trigger": str(run.trigger)}
    if isinstance(run, Job):
        context["agent"] = run.agent
        if run.firing_id is not None:
            context["firing_id"] = run.firing_id
    if run.schedule_id is not None:
        context["schedule_id"] = run.schedule_id
    return context


def start_entries(job: Job, now: datetime, started: bool) -> list[journal.JournalEntry]:
    names = ["run.admitted", "run.started"] if started else ["run.admitted"]
    return [run_entry(name, job, now) for name in names]
