"""What there is to know about a run at a glance, as words."""

from dataclasses import dataclass
from datetime import datetime

from agents_app.admin.show import exact, span
from agents_app.models import Run

ISOLATION = {
    "process": "child process",
    "host-user": "process of another user",
    "container": "container",
}


@dataclass(frozen=True, slots=True)
class RunFacts:
    """Of a run whose agent and work item were read with it."""

    run: Run
    now: datetime

    @property
    def waited(self) -> str:
        """In the queue, from the request to the start."""
        asked_at = self.run.work_item.created_at
        ended_at = self.run.started_at or self.run.finished_at or self.now
        return span(max(0.0, (ended_at - asked_at).total_seconds()))

    @property
    def progress(self) -> int | None:
        """As far as it said; once it has succeeded, that is old news."""
        percent = self.run.progress_percent
        return None if percent is None or self.run.state == "succeeded" else round(percent)

    @property
    def tokens(self) -> str:
        run = self.run
        parts = {"in": run.tokens_in, "out": run.tokens_out, "cached": run.tokens_cache}
        return " · ".join(f"{count:,} {name}" for name, count in parts.items() if count)

    @property
    def cost(self) -> str:
        return f"${self.run.cost_usd:.4f}" if self.run.cost_usd else ""

    @property
    def isolation(self) -> str:
        """As its agent is defined now: a run keeps only the name of its container."""
        kind = "container" if self.run.container else self.run.agent.runtime.get("type", "process")
        return ISOLATION.get(kind, kind)

    @property
    def began(self) -> str:
        return exact(self.run.started_at) if self.run.started_at else ""

    @property
    def deadline(self) -> str:
        """While it may still be passed."""
        unfinished = self.run.slot is not None and self.run.deadline_at is not None
        return exact(self.run.deadline_at) if unfinished and self.run.deadline_at else ""
