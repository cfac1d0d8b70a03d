"""The log on the page of a run: its end at first, then earlier or newer lines on request."""

from typing import Any

from django.http import HttpRequest

from agents_app.models import Run
from agents_app.output import Excerpt, last_lines, lines_after, lines_before

# On the page at first, and with every step back; fewer when the lines are long or colourful.
SHOWN_LINES = 300


def end_of_log(run: Run) -> Excerpt:
    """The last lines. The run must have been read before: if it had ended, all output is stored."""
    return last_lines(run.pk, SHOWN_LINES, ended=run.slot is None)


def requested_lines(request: HttpRequest, run: Run) -> dict[str, Any]:
    """The lines before a line or after a line; without a valid number the end of the log."""
    before, after = (_number(request.GET.get(name, "")) for name in ("before", "after"))
    if before is not None:
        excerpt = lines_before(run.pk, before, SHOWN_LINES)
    elif after is not None:
        excerpt = lines_after(run.pk, after, SHOWN_LINES, ended=run.slot is None)
    else:
        excerpt = end_of_log(run)
    return {
        "lines": [line.as_styled() for line in excerpt.lines],
        "earlier": excerpt.earlier,
        "ended": run.slot is None and excerpt.is_last,
    }


def _number(text: str) -> int | None:
    return int(text) if text.isascii() and text.isdigit() and len(text) < 19 else None
