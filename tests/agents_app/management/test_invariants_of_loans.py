"""What must never be true of loans, calls and locks is found if it is."""

from collections.abc import Callable

import pytest

from agents_app.maintenance.invariants import violations
from agents_app.models import AgentCall, Run, Tenant
from agents_app.models.run import LENT
from tests.agents_app.calling import Program, called, program
from tests.agents_app.fleet import NOON, Fleet, at

LATER = at(minutes=2)


def lending(fleet: Fleet) -> tuple[Program, Program]:
    """A caller whose place under a cap of one its callee has."""
    Tenant.objects.update(scale=1)
    first = program(fleet, fleet.agent("a"))
    call = first.calls(fleet.agent("b"))
    first.waits(call)
    return first, called(fleet, call)


def lent_slot_without_a_borrower(fleet: Fleet) -> None:
    first, _ = lending(fleet)
    Run.objects.filter(pk=first.job.run_id).update(slot=LENT + 7)


def lent_project_slot_without_a_borrower(fleet: Fleet) -> None:
    _, second = lending(fleet)
    Run.objects.filter(pk=second.job.run_id).update(project_borrowed_from=None)


def slot_borrowed_from_no_lender(fleet: Fleet) -> None:
    first, _ = lending(fleet)
    Run.objects.filter(pk=first.job.run_id).update(project_slot=5)


def open_call_of_an_ended_caller(fleet: Fleet) -> None:
    first = program(fleet, fleet.agent("a"))
    called(fleet, first.calls(fleet.agent("b")))
    first.ends()
    AgentCall.objects.update(ended_at=None)


def lock_of_an_ended_run(fleet: Fleet) -> None:
    first = program(fleet, fleet.agent("a"))
    first.ends()
    first.run.locks.create(
        tenant=fleet.tenant,
        uri="x:y",
        holder="x",
        held_since=NOON,
        ttl_seconds=1,
        expires_at=at(999),
    )


@pytest.mark.parametrize(
    "breaking",
    [
        lent_slot_without_a_borrower,
        lent_project_slot_without_a_borrower,
        slot_borrowed_from_no_lender,
        open_call_of_an_ended_caller,
        lock_of_an_ended_run,
    ],
    ids=lambda function: function.__name__,
)
def test_a_broken_tie_is_found_and_no_other(fleet: Fleet, breaking: Callable[[Fleet], None]):
    breaking(fleet)
    (violation,) = violations(LATER)
    assert (violation.name, violation.count) == (breaking.__name__, 1)


def test_a_loan_breaks_no_rule(fleet: Fleet):
    lending(fleet)
    assert violations(LATER) == []
