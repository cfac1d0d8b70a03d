"""A run's log for its page: the end of it at first, then what is earlier or newer, as asked for."""

from typing import Any

from django.http import HttpRequest

from agents_app.models import Run
from agents_app.output import (
    Stretch,
    as_lines,
    last_lines,
    lines_after,
    lines_before,
    output_segments,
    output_so_far,
)

# On the page at first, and with every step back; fewer when they are heavy.
SHOWN_LINES = 300


def end_of_log(run: Run) -> Stretch:
    """The run must have been read before: if it had ended then, all its output is there now."""
    return last_lines(output_segments(run.pk), SHOWN_LINES, ended=run.slot is None)


def asked_lines(request: HttpRequest, run: Run) -> dict[str, Any]:
    """Those before a line, or those after one; strange questions get the end of the log."""
    before, after = (_number(request.GET.get(name, "")) for name in ("before", "after"))
    if before is not None:
        return _shown(lines_before(output_segments(run.pk), before, SHOWN_LINES), run)
    newest = end_of_log(run)
    if after is None:
        return _shown(newest, run)
    if newest.earlier > after + 1:
        # More has come than one answer holds: the oldest of it now, the rest when it asks again.
        older = lines_after(output_segments(run.pk), after, SHOWN_LINES)
        return _shown(older, run) | {"ended": False}
    lines = tuple(line for line in newest.lines if line.number > after)
    return _shown(Stretch(lines, newest.earlier), run)


def _shown(stretch: Stretch, run: Run) -> dict[str, Any]:
    lines = [line.shown() for line in stretch.lines]
    return {"lines": lines, "earlier": stretch.earlier, "ended": run.slot is None}


def _number(text: str) -> int | None:
    return int(text) if text.isascii() and text.isdigit() and len(text) < 19 else None


def whole_text(run: Run) -> str:
    return "".join(as_lines(output_so_far(run.pk)))
