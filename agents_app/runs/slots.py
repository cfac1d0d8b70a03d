"""Locks on agents and tenants, and the free slots of an agent and its project."""

from collections.abc import Iterable
from dataclasses import dataclass

from agents_app.database import ENGINE, fetch_column, fetch_one
from agents_app.models import LENT
from agents_app.runs.block_reasons import BLOCK_SQL, BLOCK_TABLES, BY_CODE, Block

_AGENT = f"""
SELECT a.tenant_id, a.scale, a.max_reruns, a.retries, a.revision, a.timeout_seconds, t.scale,
    a.name, {BLOCK_SQL}, a.work_source IS NOT NULL
FROM {BLOCK_TABLES}
WHERE a.id = %s"""  # noqa: S608
_LOCK_AGENT = _AGENT + ENGINE.row_lock("a")
_BLOCKED = f"SELECT a.id FROM {BLOCK_TABLES} WHERE {BLOCK_SQL} <> ''"  # noqa: S608
# A run that has lent its slot does not count: its borrower does.
_USED = f"SELECT slot FROM drover_run WHERE agent_id = %s AND slot < {LENT}"  # noqa: S608
_USED_OF_TENANT = f"""
SELECT project_slot FROM drover_run
WHERE tenant_id = %s AND slot IS NOT NULL AND (project_slot IS NULL OR project_slot < {LENT})"""  # noqa: S608

# Errors that usually occur again in the next attempt on the same host.
PERSISTENT_ERRORS = ("oom_killed: ", "image_missing: ")
MAX_PERSISTENT_RETRIES = 3


@dataclass(frozen=True, slots=True)
class AgentGate:
    """The values of an agent and its tenant that decide about the next run."""

    tenant_id: int
    scale: int
    max_reruns: int
    retries: int
    revision: int
    timeout_seconds: float
    tenant_scale: int | None
    name: str
    block_code: str
    has_work_source: bool = False

    @property
    def block(self) -> Block | None:
        """The first condition that keeps the agent from starting a run."""
        return BY_CODE[self.block_code] if self.block_code else None

    @property
    def blocked_reason(self) -> str:
        """The reason to store with a firing; empty: a run may start."""
        return self.block.reason if self.block else ""

    @property
    def refuses_work(self) -> bool:
        """New work is refused instead of queued."""
        return self.block is not None and self.block.refuses_work

    def retries_after(self, error: str) -> int:
        """The number of retries; limited after an error that usually occurs again."""
        if error.startswith(PERSISTENT_ERRORS):
            return min(self.retries, MAX_PERSISTENT_RETRIES)
        return self.retries


@dataclass(frozen=True, slots=True)
class SlotPair:
    """The slot of a run, and its slot under the project's cap if there is one."""

    slot: int
    project_slot: int | None


def lock_agent(agent_id: int) -> AgentGate | None:
    """Lock the agent until the transaction ends, so that its admissions are serialized."""
    row = fetch_one(_LOCK_AGENT, [agent_id])
    return AgentGate(*row) if row else None


def read_blocked_agents() -> list[int]:
    """The ids of the agents, of all tenants, for which a block holds."""
    return fetch_column(_BLOCKED, [])


def lock_agents(agent_ids: Iterable[int]) -> None:
    """Lock several agents in one order and before any tenant, so that no deadlock is possible."""
    for agent_id in sorted(set(agent_ids)):
        lock_agent(agent_id)


def lock_tenant(tenant_id: int) -> None:
    """Lock the tenant after all agents: project slots and loans change only under this lock."""
    ENGINE.lock_row("drover_tenant", tenant_id)


def find_free_slots(agent_id: int, gate: AgentGate) -> SlotPair | None:
    """The agent has to be locked. Locks the tenant if it has a cap."""
    slot = find_free_slot(agent_id, gate.scale)
    if slot is None:
        return None
    if gate.tenant_scale is None:
        return SlotPair(slot, None)
    lock_tenant(gate.tenant_id)
    project_slot = find_free_project_slot(gate)
    return None if project_slot is None else SlotPair(slot, project_slot)


def find_free_slot(agent_id: int, scale: int) -> int | None:
    return lowest_free_number(scale, fetch_column(_USED, [agent_id]))


def find_free_project_slot(gate: AgentGate) -> int | None:
    assert gate.tenant_scale is not None
    return lowest_free_number(gate.tenant_scale, fetch_column(_USED_OF_TENANT, [gate.tenant_id]))


def lowest_free_number(scale: int, used: list[int | None]) -> int | None:
    """Compares the count first: after a lowered scale, numbers outside the range still count."""
    if len(used) >= scale:
        return None
    taken = set(used)
    return next(number for number in range(scale) if number not in taken)
