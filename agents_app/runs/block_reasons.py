"""The reasons for which an agent starts no run, each declared once with its condition and its text.

The SQL of slots.py, firings and their history, `why`, commands, the API and rules derive from here.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from agents_app.models import Agent, Firing, Schedule, Scheduler, Tenant

R = Firing.Reason
# The rows that the conditions read, and their aliases in SQL.
ALIASES = {"scheduler": "s", "tenant": "t", "agent": "a"}
# A valid file gives its agent the revision 1; later errors leave the last valid version in use.
_NEVER_VALID_SQL = "(a.revision = 0 AND a.definition_error <> '')"


def _is_never_valid(agent: Agent | None) -> bool:
    return agent is not None and agent.revision == 0 and agent.definition_error != ""


@dataclass(frozen=True, slots=True)
class Block:
    """A condition on one column of one row under which an agent starts nothing."""

    # For programs; more precise than the reason, which a skipped firing stores.
    code: str
    reason: str
    row: str
    column: str
    text: str
    remedy: str = ""
    # The value that blocks; None: every value but NULL.
    value: int | str | None = None
    # Work is refused instead of queued.
    refuses_work: bool = False
    # Of an agent: holds only if its file was never valid (True), or was valid once (False).
    never_valid: bool | None = None

    @property
    def sql(self) -> str:
        column = f"{ALIASES[self.row]}.{self.column}"
        holds = f"{column} IS NOT NULL" if self.value is None else f"{column} = {self.value!r}"
        if self.never_valid is None:
            return holds
        return f"{holds} AND {'' if self.never_valid else 'NOT '}{_NEVER_VALID_SQL}"

    def holds(self, rows: Mapping[str, Any]) -> bool:
        """The same condition on rows that have been read, by their names in ALIASES."""
        row = rows.get(self.row)
        found = getattr(row, self.column, None)
        if not (found is not None if self.value is None else found == self.value):
            return False
        return self.never_valid is None or _is_never_valid(row) == self.never_valid

    @property
    def ends_at_known_time(self) -> bool:
        return self.column.endswith("_until")

    def refusal(self, agent_id: int) -> str:
        """The text and the remedy; for a file with errors the first error instead."""
        if not self.never_valid:
            return f"{self.text}: {self.remedy}"
        errors = (
            Agent.objects.values_list("definition_error", flat=True).filter(pk=agent_id).first()
        )
        # The file may have been corrected since the block was found.
        lines = (errors or "").splitlines()
        return f"{self.text}: {lines[0] if lines else self.remedy}"

    def ends_at(self, rows: Mapping[str, Any]) -> datetime | None:
        """When the block ends by itself, if that is known; reads the row of the block."""
        end = getattr(rows.get(self.row), self.column, None) if self.ends_at_known_time else None
        return end if isinstance(end, datetime) else None

    def describe(self, rows: Mapping[str, Any], clock: Callable[[datetime], str]) -> str:
        """The text, since or until when it holds, and the note of a pause or the remedy."""
        row = rows[self.row]
        moment = getattr(row, self.column)
        when = ""
        if isinstance(moment, datetime):
            when = f" {'until' if self.ends_at_known_time else 'since'} {clock(moment)}"
        note = row.pause_note if self.column == "paused_at" else ""
        more = note or self.remedy
        return f"{self.text}{when}" + (f": {more}" if more else "")


# In order of priority: the first block that holds is the reason.
BLOCKS = (
    Block(
        *("scheduler_draining", R.STOPPING, "scheduler", "state"),
        *("the scheduler is draining", "start it again when it has stopped"),
        value=Scheduler.State.DRAINING.value,
    ),
    Block(
        *("scheduler_stopped", R.STOPPING, "scheduler", "state"),
        *("the scheduler is stopped", "start it"),
        value=Scheduler.State.STOPPED.value,
    ),
    Block(
        *("tenant_disabled", R.TENANT_DISABLED, "tenant", "disabled_at"),
        *("the tenant is disabled", "enable it"),
        refuses_work=True,
    ),
    Block(
        *("agent_missing", R.DISABLED, "agent", "removed_at"),
        *("the agent's directory is missing", "put it back"),
        refuses_work=True,
    ),
    Block(
        *("agent_never_valid", R.DISABLED, "agent", "revision"),
        *("the agent's file has errors, and no version of it is in use", "fix the file"),
        value=0,
        refuses_work=True,
        never_valid=True,
    ),
    Block(
        *("agent_disabled", R.DISABLED, "agent", "scale"),
        *("the agent's scale is 0", "give it a scale above 0"),
        value=0,
        refuses_work=True,
        never_valid=False,
    ),
    Block(
        *("agent_paused", R.PAUSED, "agent", "paused_at"),
        *("the agent is paused", "resume it"),
    ),
    Block(
        *("scheduler_paused", R.PAUSED, "tenant", "paused_at"),
        *("the scheduler is paused", "resume it"),
    ),
    Block(
        *("budget", R.BUDGET, "agent", "over_budget_until"),
        "the agent's budget is used up",
    ),
    Block(
        *("project_budget", R.BUDGET, "tenant", "over_budget_until"),
        "the project's budget is used up",
    ),
)
BY_CODE: Mapping[str, Block] = {block.code: block for block in BLOCKS}
# The tables that the conditions read, with the aliases of ALIASES.
BLOCK_TABLES = """drover_agent a JOIN drover_tenant t ON t.id = a.tenant_id
    LEFT JOIN drover_scheduler s ON s.id = 1"""
# The code of the first block that holds, or an empty text.
BLOCK_SQL = (
    f"CASE {' '.join(f'WHEN {block.sql} THEN {block.code!r}' for block in BLOCKS)} ELSE '' END"
)

# The notes of schedules that Drover pauses; the end of the reason finds them by these texts.
AGENT_MISSING = BY_CODE["agent_missing"].text
TENANT_DISABLED = BY_CODE["tenant_disabled"].text

# A firing stores one word as its reason: a text names all meanings that the word may have.
SKIP_REASON_TEXTS: Mapping[str, str] = {
    R.DISABLED: "the agent was disabled (its scale was 0, its file had errors or its directory was "
    "missing), or the schedule was canceled",
    R.ALREADY_RUNNING: "the schedule's earlier work was not finished",
    R.AT_CAPACITY: "no slot was free",
    R.PAUSED: "the schedule, its agent or the scheduler was paused",
    R.BUDGET: "the budget was used up",
    R.TENANT_DISABLED: "the tenant was disabled",
    R.MISSED: "Drover did not run at that time, and the firing was not caught up",
    R.STOPPING: "the scheduler was draining or stopped",
    R.NO_WORK: "its work source had no item to work on",
    R.SOURCE_FAILED: "its work source could not be read; the page of the work source has the error",
}
# The reason stored with a firing whose schedule was paused or canceled after it was recorded.
SCHEDULE_BLOCKS: Mapping[str, str] = {
    Schedule.State.PAUSED: R.PAUSED,
    Schedule.State.CANCELED: R.DISABLED,
}


def find_blocks(
    agent: Agent | None = None, tenant: Tenant | None = None, scheduler: Scheduler | None = None
) -> list[Block]:
    """The blocks that hold by the given rows, as these were read."""
    rows = {"agent": agent, "tenant": tenant, "scheduler": scheduler}
    return [block for block in BLOCKS if block.holds(rows)]
