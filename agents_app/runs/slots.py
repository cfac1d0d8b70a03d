"""May an agent start another run now? Its slots, its tenant's, its pauses, in one look."""

from collections.abc import Iterable
from dataclasses import dataclass

from agents_app.database import ENGINE, fetch_column, fetch_one
from agents_app.models import LENT

_AGENT = """
SELECT a.tenant_id, a.scale, a.max_reruns, a.retries, a.revision, a.timeout_seconds,
       a.removed_at IS NOT NULL, t.disabled_at IS NOT NULL,
       a.paused_at IS NOT NULL OR t.paused_at IS NOT NULL, t.scale,
       a.over_budget_until IS NOT NULL OR t.over_budget_until IS NOT NULL,
       EXISTS (SELECT 1 FROM drover_scheduler s WHERE s.id = 1 AND s.state <> 'running')
FROM drover_agent a JOIN drover_tenant t ON t.id = a.tenant_id
WHERE a.id = %s"""
_LOCK_AGENT = _AGENT + ENGINE.row_lock("a")
# Whoever has lent its place waits, and counts for nothing: its borrower does.
_USED = f"SELECT slot FROM drover_run WHERE agent_id = %s AND slot < {LENT}"  # noqa: S608
_USED_OF_TENANT = f"""
SELECT project_slot FROM drover_run
WHERE tenant_id = %s AND slot IS NOT NULL AND (project_slot IS NULL OR project_slot < {LENT})"""  # noqa: S608


@dataclass(frozen=True, slots=True)
class AgentGate:
    """What decides about an agent's next run."""

    tenant_id: int
    scale: int
    max_reruns: int
    retries: int
    revision: int
    timeout_seconds: float
    removed: bool
    tenant_disabled: bool
    paused: bool
    tenant_scale: int | None
    over_budget: bool
    stopping: bool

    @property
    def blocked_reason(self) -> str:
        """The reason for which nothing may start, or nothing."""
        if self.stopping:
            return "stopping"
        if self.tenant_disabled:
            return "tenant_disabled"
        if self.removed or self.scale == 0:
            return "disabled"
        if self.paused:
            return "paused"
        return "budget" if self.over_budget else ""


@dataclass(frozen=True, slots=True)
class SlotPair:
    """The slot a run takes, and its place under the project's cap if there is one."""

    slot: int
    project_slot: int | None


def lock_agent(agent_id: int) -> AgentGate | None:
    """Locks the agent until the transaction ends: its admissions go one after the other."""
    row = fetch_one(_LOCK_AGENT, [agent_id])
    return AgentGate(*row) if row else None


def lock_agents(agent_ids: Iterable[int]) -> None:
    """For a change that touches several: always in one order and before any tenant, so that two
    such changes, or one and a finishing run, never wait for each other."""
    for agent_id in sorted(set(agent_ids)):
        lock_agent(agent_id)


def lock_tenant(tenant_id: int) -> None:
    """After any agents, never before: the cap's places, and loans, change one after the other."""
    ENGINE.lock_row("drover_tenant", tenant_id)


def find_free_slots(agent_id: int, gate: AgentGate) -> SlotPair | None:
    slot = free_slot(agent_id, gate.scale)
    if slot is None:
        return None
    if gate.tenant_scale is None:
        return SlotPair(slot, None)
    lock_tenant(gate.tenant_id)
    project_slot = free_project_slot(gate)
    return None if project_slot is None else SlotPair(slot, project_slot)


def free_slot(agent_id: int, scale: int) -> int | None:
    return lowest_free(scale, fetch_column(_USED, [agent_id]))


def free_project_slot(gate: AgentGate) -> int | None:
    assert gate.tenant_scale is not None
    return lowest_free(gate.tenant_scale, fetch_column(_USED_OF_TENANT, [gate.tenant_id]))


def lowest_free(scale: int, used: list[int | None]) -> int | None:
    """Counts first: after a scale was lowered, or a cap set, runs outside the range still count."""
    if len(used) >= scale:
        return None
    taken = set(used)
    return next(number for number in range(scale) if number not in taken)
