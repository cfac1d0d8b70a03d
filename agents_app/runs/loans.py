"""Loans of slots: a run that waits for a call lends its slot to the called run.

Without loans a tree of calls could wait for its own slots forever. The lender gets a number above
LENT, which no scale counts, and the borrower the real one, so the number of used slots stays the
same. Each change of a loan requires the lock on the tenant.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from agents_app.database import execute, fetch_one, to_database_time
from agents_app.models import LENT
from agents_app.runs.slots import (
    AgentGate,
    SlotPair,
    find_free_project_slot,
    find_free_slot,
    lock_agent,
    lock_agents,
    lock_tenant,
)

# A wait signal ends before this time; if it did not, its gateway died and the run may not wait.
LONGEST_WAIT = timedelta(seconds=60)
_COLUMNS = (("slot", "borrowed_from_id"), ("project_slot", "project_borrowed_from_id"))
_WAITING_WORK = """
SELECT w.agent_id, w.parent_run_id, t.scale IS NOT NULL
FROM drover_work_item w JOIN drover_tenant t ON t.id = w.tenant_id
WHERE w.id = %s AND w.state = 'queued' AND w.available_at <= %s AND w.parent_run_id IS NOT NULL"""
_LINEAGE = """
WITH RECURSIVE lineage (id, agent_id, slot, project_slot, parent_run_id, waiting_since, step) AS (
    SELECT id, agent_id, slot, project_slot, parent_run_id, waiting_since, 0
    FROM drover_run WHERE id = %s
    UNION ALL
    SELECT r.id, r.agent_id, r.slot, r.project_slot, r.parent_run_id, r.waiting_since, step + 1
    FROM drover_run r JOIN lineage ON r.id = lineage.parent_run_id)
SELECT id, agent_id, slot, project_slot FROM lineage
WHERE slot IS NOT NULL AND waiting_since > %s ORDER BY step"""
_SET_SLOT = "UPDATE drover_run SET {slot} = %s WHERE id = %s"
_RECORD_DEBT = """
UPDATE drover_run SET borrowed_from_id = %s, project_borrowed_from_id = %s WHERE id = %s"""
_RETURN_SLOT = "UPDATE drover_run SET {slot} = %s WHERE id = %s AND {slot} >= %s"
_TRANSFER_DEBT = "UPDATE drover_run SET {debt} = %s WHERE {debt} = %s AND slot IS NOT NULL"
_SLOTS_AND_DEBTS = """
SELECT slot, project_slot, borrowed_from_id, project_borrowed_from_id
FROM drover_run WHERE id = %s"""


@dataclass(frozen=True, slots=True)
class Ancestor:
    """An unfinished run that waits for the work item: its caller, or a caller of its caller."""

    run_id: int
    agent_id: int
    slot: int
    project_slot: int | None


@dataclass(frozen=True, slots=True)
class Loan:
    """Slots for a called run; the slot and the project slot may have different lenders."""

    slots: SlotPair
    slot_lender: int | None
    project_lender: int | None

    @property
    def detail(self) -> str:
        lenders = sorted({lender for lender in (self.slot_lender, self.project_lender) if lender})
        return f"slot lent by {' and '.join(f'run {lender}' for lender in lenders)}"


# --- lending --------------------------------------------------------------------------------


def has_lender(work_item_id: int, now: datetime) -> bool:
    """Whether a loan is possible, read without locks: called often, and most calls have no loan."""
    work = fetch_one(_WAITING_WORK, [work_item_id, to_database_time(now)])
    if work is None:
        return False
    agent_id, parent_run_id, capped = work
    lineage = _lineage(parent_run_id, now)
    return any(
        _lends_slot(each, agent_id) or (capped and _lends_project_slot(each)) for each in lineage
    )


def find_loan(work_item_id: int, now: datetime) -> tuple[AgentGate, Loan] | None:
    """Slots to lend to a queued work item that was called; None: no lender, or free slots exist.

    Locks the agents of the work item and of its callers, then the tenant.
    """
    work = fetch_one(_WAITING_WORK, [work_item_id, to_database_time(now)])
    if work is None:
        return None
    agent_id, parent_run_id, _ = work
    before = _lineage(parent_run_id, now)
    # Ending a lender locks its agent: all agents are locked before the tenant, in one order.
    lock_agents([agent_id, *(ancestor.agent_id for ancestor in before)])
    gate = lock_agent(agent_id)
    if gate is None or gate.blocked_reason or not before:
        return None
    lock_tenant(gate.tenant_id)
    known = {ancestor.run_id for ancestor in before}
    lineage = [each for each in _lineage(parent_run_id, now) if each.run_id in known]
    loan = find_lenders(agent_id, gate, lineage)
    return (gate, loan) if loan else None


def find_lenders(agent_id: int, gate: AgentGate, lineage: Sequence[Ancestor]) -> Loan | None:
    """Free slots are used; a missing slot is borrowed from the nearest caller that has one."""
    slot, project_slot = find_free_slot(agent_id, gate.scale), None
    slot_lender = project_lender = None
    if slot is None:
        slot_lender = _first([each for each in lineage if _lends_slot(each, agent_id)])
        slot = slot_lender.slot if slot_lender else None
    if slot is None:
        return None
    if gate.tenant_scale is not None:
        project_slot = find_free_project_slot(gate)
        if project_slot is None:
            project_lender = _first([each for each in lineage if _lends_project_slot(each)])
            if project_lender is None:
                return None
            project_slot = project_lender.project_slot
    if slot_lender is None and project_lender is None:
        return None
    return Loan(SlotPair(slot, project_slot), _id(slot_lender), _id(project_lender))


def take_slots(loan: Loan) -> None:
    """Take the slots from the lenders; call it before the borrower's run is inserted."""
    for (column, _), lender in zip(_COLUMNS, (loan.slot_lender, loan.project_lender), strict=True):
        if lender is not None:
            execute(_SET_SLOT.format(slot=column), [LENT + lender % LENT, lender])


def record_debt(run_id: int, loan: Loan) -> None:
    """Store with the borrower which runs its slots are returned to."""
    execute(_RECORD_DEBT, [loan.slot_lender, loan.project_lender, run_id])


# --- returning ------------------------------------------------------------------------------


def return_slot(run_id: int, held: SlotPair, debts: tuple[int | None, int | None]) -> None:
    """Return the slots of an ended run to its lenders.

    Slots that the run has lent itself stay with the borrower, which then owes them to the run's
    own lender.
    """
    for (column, debt), number, lender in zip(
        _COLUMNS, (held.slot, held.project_slot), debts, strict=True
    ):
        if number is not None and number >= LENT:
            execute(_TRANSFER_DEBT.format(debt=debt), [lender, run_id])
        elif lender is not None:
            execute(_RETURN_SLOT.format(slot=column), [number, lender, LENT])


def read_slots_and_debts(run_id: int) -> tuple[SlotPair, tuple[int | None, int | None]]:
    row = fetch_one(_SLOTS_AND_DEBTS, [run_id])
    assert row is not None
    return SlotPair(row[0], row[1]), (row[2], row[3])


# --- parts ----------------------------------------------------------------------------------


def _lineage(parent_run_id: int, now: datetime) -> list[Ancestor]:
    rows = execute(_LINEAGE, [parent_run_id, to_database_time(now - LONGEST_WAIT)]).fetchall()
    return [Ancestor(*row) for row in rows]


def _lends_slot(ancestor: Ancestor, agent_id: int) -> bool:
    return ancestor.agent_id == agent_id and ancestor.slot < LENT


def _lends_project_slot(ancestor: Ancestor) -> bool:
    # A run without a project slot counts, too: the cap was set while it ran.
    return (ancestor.project_slot or 0) < LENT


def _first(ancestors: Sequence[Ancestor]) -> Ancestor | None:
    return ancestors[0] if ancestors else None


def _id(ancestor: Ancestor | None) -> int | None:
    return ancestor.run_id if ancestor else None
