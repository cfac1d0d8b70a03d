"""Facts and call tree of a run, as its page shows them."""

import json
from dataclasses import dataclass
from datetime import datetime

from django.utils.html import format_html, format_html_join
from django.utils.safestring import SafeString

from agents_app.admin.formatting import badge, duration, exact, page_at
from agents_app.models import Run
from agents_app.reports import Cause
from agents_app.runners import NONE, OFF, missing_promises

ISOLATION = {
    "process": "child process",
    "host-user": "process of another user",
    "container": "container",
}
# Longer lists of calls are collapsed.
MOST_UNFOLDED = 20


@dataclass(frozen=True, slots=True)
class RunFacts:
    """Requires a run that was read with its agent and work item."""

    run: Run
    now: datetime

    @property
    def waited(self) -> str:
        """Time in the queue, from the request to the start."""
        requested_at = self.run.work_item.created_at
        ended_at = self.run.started_at or self.run.finished_at or self.now
        return duration(max(0.0, (ended_at - requested_at).total_seconds()))

    @property
    def progress(self) -> int | None:
        """The reported progress; None for a run that has succeeded."""
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
    def metadata(self) -> str:
        """What the run has left for its hooks, one value a line."""
        return "\n".join(
            f"{key}: {json.dumps(value, ensure_ascii=False)}"
            for key, value in self.run.metadata.items()
        )

    @property
    def isolation(self) -> str:
        """From the current definition of the agent: a run stores only its container."""
        kind = "container" if self.run.container else self.run.agent.runtime.get("type", "process")
        return ISOLATION.get(kind, kind)

    @property
    def sandbox(self) -> str:
        """Whether the program was confined, and which promises did not hold; empty: not known."""
        stored = self.run.sandbox
        if stored == OFF:
            return "no sandbox: switched off by the agent"
        if stored == NONE:
            return "no sandbox: this kernel has none"
        missing = ", ".join(missing_promises(stored))
        return stored and f"in a sandbox{f', without: {missing}' if missing else ''}"

    @property
    def deadline(self) -> str:
        """Empty once the run has ended."""
        unfinished = self.run.slot is not None and self.run.deadline_at is not None
        return exact(self.run.deadline_at) if unfinished and self.run.deadline_at else ""


# --- trigger and calls -----------------------------------------------------------------------


def nested_list(causes: tuple[Cause, ...]) -> SafeString:
    """Nested HTML lists, which screen readers and keyboards can follow."""
    if not causes:
        return SafeString("")
    items = format_html_join(
        "", "<li>{}{}</li>", ((_line(c), nested_list(c.below)) for c in causes)
    )
    if len(causes) <= MOST_UNFOLDED:
        return format_html("<ul>{}</ul>", items)
    folded = "<details><summary>{} calls</summary><ul>{}</ul></details>"
    return format_html(folded, f"{len(causes):,}", items)


def _line(cause: Cause) -> SafeString:
    state = badge(cause.state) if cause.state else ""
    detail = format_html(' <span class="dv-aside">{}</span>', cause.detail) if cause.detail else ""
    return format_html("{} {}{}", _name(cause), state, detail)


def _name(cause: Cause) -> SafeString:
    if cause.here:
        return format_html('<strong aria-current="true">{}</strong>', cause.label)
    if not cause.table:
        return format_html("<span>{}</span>", cause.label)
    url = page_at(cause.table, cause.key)
    return format_html('<a class="dv-link" href="{}">{}</a>', url, cause.label)
