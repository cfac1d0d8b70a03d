"""update_many writes changed columns only, and only rows that still have the revision read."""

from datetime import datetime, timedelta
from typing import Any

import pytest

from agents_app.database.bulk import update_many
from agents_app.models import RuleState
from tests.agents_app.fleet import NOON, Fleet

KINDS = {
    "id": "bigint", "revision": "bigint", "next_due_at": "timestamptz", "reason": "text",
    "failures": "bigint",
}  # fmt: skip
LATER = NOON + timedelta(minutes=1)
# A text that array literals, JSON or SQL could take for something else.
AWKWARD = 'a "quoted", {braced} \\ NULL \n %s ünïcode'
Values = tuple[datetime | None, str, int]


@pytest.fixture
def rows(fleet: Fleet) -> list[RuleState]:
    made = [
        RuleState(tenant=fleet.tenant, name=f"r{n}", text="", line=n, next_due_at=NOON)
        for n in range(3)
    ]
    return RuleState.objects.bulk_create(made)


def change(row: RuleState, *new: Any, revision: int = 0) -> tuple[tuple[Any, ...], tuple[Any, ...]]:
    read = (row.pk, revision, row.next_due_at, row.reason, row.failures)
    return (row.pk, revision, *new), read


def stored(row: RuleState) -> Values:
    row.refresh_from_db()
    return row.next_due_at, row.reason, row.failures


@pytest.mark.django_db(transaction=True)
def test_each_row_gets_its_own_values_and_a_new_revision(rows: list[RuleState]):
    new: list[Values] = [(LATER, AWKWARD, 1), (None, "", 0), (NOON, "NULL", 2)]
    group = [change(row, *values) for row, values in zip(rows, new, strict=True)]
    assert update_many("drover_rule", KINDS, [group, []]) == {row.pk for row in rows}
    assert [stored(row) for row in rows] == new
    assert [row.revision for row in rows] == [1, 1, 1]


@pytest.mark.django_db(transaction=True)
def test_a_value_that_all_rows_of_a_group_get_is_not_given_to_other_groups(rows: list[RuleState]):
    first, second, other = rows
    groups = [
        [change(row, LATER, "due", 0) for row in (first, second)],
        [change(other, NOON, "", 7)],
    ]
    assert update_many("drover_rule", KINDS, groups) == {row.pk for row in rows}
    due = (LATER, "due", 0)
    assert [stored(row) for row in rows] == [due, due, (NOON, "", 7)]


@pytest.mark.django_db(transaction=True)
def test_a_row_that_was_changed_since_it_was_read_is_left_alone_and_not_returned(
    rows: list[RuleState],
):
    first, second, _ = rows
    RuleState.objects.filter(pk=second.pk).update(revision=1, reason="of another process")
    group = [change(row, LATER, "mine", 0) for row in (first, second)]
    assert update_many("drover_rule", KINDS, [group]) == {first.pk}
    assert [stored(row)[1] for row in rows] == ["mine", "of another process", ""]


@pytest.mark.django_db(transaction=True)
def test_columns_that_change_in_no_row_are_not_written(rows: list[RuleState]):
    """A value that another process wrote there without a new revision is kept."""
    RuleState.objects.update(failures=5)
    update_many("drover_rule", KINDS, [[change(row, LATER, "due", 0) for row in rows]])
    assert [stored(row) for row in rows] == [(LATER, "due", 5)] * 3
