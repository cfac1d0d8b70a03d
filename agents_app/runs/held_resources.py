"""What ties a run to others while it goes on, and is let go when it ends: loans and locks.

Most runs say nothing and borrow nothing: for them one look that finds no row is all it costs.
"""

from dataclasses import dataclass, replace

from agents_app.database import execute, fetch_one
from agents_app.models import Run
from agents_app.runners import Outcome, verdict
from agents_app.runs import loans
from agents_app.runs.job import Ending
from agents_app.runs.slots import SlotPair, lock_tenant
from agents_app.runs.statements import TIES_OF

_RELEASE = "DELETE FROM drover_resource_lock WHERE run_id = %s"
_FORGET_WAITS = "DELETE FROM drover_lock_wait WHERE run_id = %s"


@dataclass(frozen=True, slots=True)
class HeldResources:
    """`place` and `debts` of a run that has lent or borrowed its place, else nothing."""

    run_id: int
    exit_signal: int | None
    rerun_requested: bool
    signaled: bool
    place: SlotPair | None = None
    debts: tuple[int | None, int | None] = (None, None)

    def return_slots(self) -> None:
        if self.place is not None:
            loans.return_slot(self.run_id, self.place, self.debts)

    def release_locks(self) -> None:
        if self.signaled:
            execute(_RELEASE, [self.run_id])
            execute(_FORGET_WAITS, [self.run_id])


NO_TIES = HeldResources(0, None, False, False)


def read_held_resources(run_id: int, tenant_id: int) -> HeldResources:
    """Before the run ends; its agent is locked, so nothing more is lent by it meanwhile."""
    row = fetch_one(TIES_OF, [run_id])
    if row is None:
        return NO_TIES
    exit_signal, rerun_requested, signaled, on_loan = row
    ties = HeldResources(run_id, exit_signal, bool(rerun_requested), bool(signaled))
    if not on_loan:
        return ties
    # Only now is it certain who owes what to whom.
    lock_tenant(tenant_id)
    place, debts = loans.slots_and_debts(run_id)
    return replace(ties, place=place, debts=debts)


def as_signaled(ties: HeldResources, ending: Ending) -> Ending:
    """A run may say how it ends: an exit beats a rerun, and a rerun a plain success."""
    if ending.state not in {Run.State.SUCCEEDED, Run.State.FAILED}:
        return ending
    if ties.exit_signal is not None:
        said = verdict(Outcome("exited", ties.exit_signal))
        return replace(
            ending,
            state=said.state,
            error=said.error,
            exit_code=ties.exit_signal,
            wants_rerun=False,
        )
    asked = ties.rerun_requested and ending.state == Run.State.SUCCEEDED
    return replace(ending, wants_rerun=ending.wants_rerun or asked)
