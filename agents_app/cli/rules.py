"""Tables of the command `rules`: state, dry run, and errors of the file."""

from collections.abc import Iterator, Mapping
from datetime import datetime
from typing import Any

from agents_app.clock import local
from agents_app.rules.engine import DryRunResult, RuleLine
from agents_app.text import relative

STATE_COLUMNS = ("name", "trigger", "condition", "action", "last", "status", "next")
TEST_COLUMNS = ("line", "rule", "now", "condition", "why not", "due")
NOTHING = "--"


# --- the state table ------------------------------------------------------------------------


def state_row(line: RuleLine, now: datetime) -> tuple[object, ...]:
    row = line.row
    last = relative(row.evaluated_at, now) if row.evaluated_at else NOTHING
    due = relative(row.next_due_at, now) if row.next_due_at else NOTHING
    parts = (row.name, line.trigger, line.condition or NOTHING, line.action)
    return (*parts, last, line.status, due)


# --- a dry run ------------------------------------------------------------------------------


def test_row(one: DryRunResult, now: datetime) -> tuple[object, ...]:
    due = "now" if one.due_at <= now else f"{relative(one.due_at, now)} ({local(one.due_at)})"
    condition = NOTHING
    if one.rule.conditions:
        # The reason of a false condition is listed in the column "why not".
        condition = f"true: {one.result.reason}" if one.result.holds else "false"
    verdict = "fires" if one.fires else NOTHING
    return one.rule.line, one.rule.name, verdict, condition, "; ".join(one.obstacles), due


# --- errors ---------------------------------------------------------------------------------


def error_text(error: Mapping[str, Any], file: str) -> Iterator[str]:
    """In the form of compilers: position, error, the line, and an arrow to the column."""
    place = f"{file}:{error['line']}:{error['column']}" if error["line"] else file
    yield f"{place}: {error['problem']} (expected {error['expected']})"
    if error["raw"]:
        # The indentation repeats the tabs of the line, so that the arrow meets its column.
        before = error["raw"][: error["column"] - 1]
        yield f"    {error['raw']}"
        if len(before) == error["column"] - 1:
            yield "    " + "".join("\t" if c == "\t" else " " for c in before) + "^"
