"""Journal entries about runs."""

from datetime import datetime

from agents_app.events import journal
from agents_app.models import Run
from agents_app.runs.job import Job


def run_entry(name: str, run: Job | Run, now: datetime, detail: str = "") -> journal.JournalEntry:
    run_id = run.run_id if isinstance(run, Job) else run.pk
    return journal.JournalEntry(
        name, now, run.tenant_id, run.agent_id, run_id, detail, run.trace_id
    )


def start_entries(job: Job, now: datetime, started: bool) -> list[journal.JournalEntry]:
    names = ["run.admitted", "run.started"] if started else ["run.admitted"]
    return [run_entry(name, job, now) for name in names]
