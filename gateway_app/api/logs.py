"""/v1/runs/{id}/logs and /output: the output of a run as lines, as a stream, or as bytes."""

import re
from collections.abc import Iterator
from itertools import islice
from typing import Any, Literal

from django.http import HttpRequest, HttpResponse
from ninja import Query, Router
from pydantic import Field

from agents_app.models import Run
from agents_app.output import LogLine, LogReader
from gateway_app.access import TO_READ, answers, caller_of, problem
from gateway_app.api.event_streams import last_event_id, streamed
from gateway_app.api.fields import LARGEST_KEY, ExactEpoch, Filters, Shape, wants_iso_times
from gateway_app.api.tenant_rows import find_run, output_of
from gateway_app.streams import OutputRequest, start_stream, subscriber_of

router = Router(tags=["runs"])
_RANGE = re.compile(r"bytes=(\d{0,18})-(\d{0,18})", re.ASCII)


class LineShape(Shape):
    number: int
    at: ExactEpoch
    stream: Literal["stdout", "stderr", "marker"]
    text: str


class LogPage(Shape):
    run_id: int
    lines: list[LineShape]
    next_offset: int
    complete: bool = Field(description="The run has ended, and there is no line after these.")


class LineFilters(Filters):
    offset: int = Field(0, ge=0, le=2**31, description="The number of lines to skip.")
    limit: int = Field(1000, ge=1, le=10_000)


@router.get("/runs/{int:run_id}/logs", response=answers(LogPage), auth=TO_READ)
def show_lines(request: HttpRequest, run_id: int, filters: Query[LineFilters]) -> LogPage:
    """Lines of valid text without control characters; an unfinished line is not included."""
    run = find_run(caller_of(request).tenant, run_id)
    ended = run.finished_at is not None
    stored = _lines_from(run, filters.offset, ended=ended)
    wanted = list(islice(stored, filters.limit + 1))
    lines = [LineShape(**line.as_plain()) for line in wanted[: filters.limit]]
    return LogPage(
        run_id=run.pk,
        lines=lines,
        next_offset=filters.offset + len(lines),
        complete=ended and len(wanted) <= filters.limit,
    )


def _lines_from(run: Run, first: int, *, ended: bool) -> Iterator[LogLine]:
    reader = LogReader(run.pk, first)
    yield from reader.read()
    if ended:
        yield from reader.unfinished(ended=True)


# --- as a stream ----------------------------------------------------------------------------


class FollowFilters(Filters):
    last_event_id: int | None = Field(
        None, ge=0, le=LARGEST_KEY, description="For clients that cannot send the header."
    )
    styled: bool = Field(
        False,
        description="For display: `spans` with colours instead of `text`, and a progress bar as "
        "one line. An unfinished line is sent with `open` and without an `id`, and again when it "
        "has changed. Only a line feed ends a line; its number is that of its last plain line.",
    )


_STREAM = streamed(
    "`open`, then one `line` per line, with its number as `id`, then `end` with the final state of "
    "the run; a client that reconnects gets `end` again. A comment after 30 s without an event."
)


@router.get(
    "/runs/{int:run_id}/logs/stream", response=answers(None), auth=TO_READ, openapi_extra=_STREAM
)
def follow_lines(request: HttpRequest, run_id: int, filters: Query[FollowFilters]) -> HttpResponse:
    """The same lines as a stream, from the first one until the run ends."""
    run = find_run(caller_of(request).tenant, run_id)
    after = last_event_id(request, filters.last_event_id)
    seen = -1 if after is None else after
    wanted = OutputRequest(
        *(subscriber_of(request), run.pk, seen, filters.styled), iso_times=wants_iso_times(request)
    )
    return start_stream(request, wanted)


# --- as bytes -------------------------------------------------------------------------------

_PLAIN = {"text/plain": {"schema": {"type": "string"}}}
_RAW: dict[str, Any] = {
    "parameters": [
        {"in": "header", "name": "Range", "required": False, "schema": {"type": "string"}}
    ],
    "responses": {
        200: {"description": "The complete output", "content": _PLAIN},
        206: {"description": "The part that `Range: bytes=...` names", "content": _PLAIN},
        416: {
            "description": "The output has no such part",
            "content": {"application/json": {"schema": {"$ref": "#/components/schemas/Problem"}}},
        },
    },
}


@router.get("/runs/{int:run_id}/output", response=answers(None), auth=TO_READ, openapi_extra=_RAW)
def show_bytes(request: HttpRequest, run_id: int) -> HttpResponse:
    """The bytes that the run printed, stdout and stderr in order; accepts a Range header."""
    data = _bytes(find_run(caller_of(request).tenant, run_id))
    part = byte_range(request.headers.get("Range", ""), len(data))
    if part is None:
        response = HttpResponse(data, content_type="text/plain; charset=utf-8")
    elif part.stop <= part.start:
        response = problem(
            416, "no_such_range", f"the output has {len(data)} bytes: request a range within it"
        )
        response["Content-Range"] = f"bytes */{len(data)}"
    else:
        response = HttpResponse(data[part.start : part.stop], status=206, content_type="text/plain")
        response["Content-Range"] = f"bytes {part.start}-{part.stop - 1}/{len(data)}"
    response["Accept-Ranges"] = "bytes"
    return response


def byte_range(header: str, size: int) -> range | None:
    """None: no range, or one that a server may ignore. Empty: a range after the last byte."""
    found = _RANGE.fullmatch(header.strip())
    if found is None or found.group(1) == found.group(2) == "":
        return None
    first, last = found.groups()
    if not first:
        return range(max(0, size - int(last)), size)
    if last and int(last) < int(first):
        return None
    return range(int(first), min(size, int(last) + 1) if last else size)


def _bytes(run: Run) -> bytes:
    return b"".join(bytes(data) for data in output_of(run).values_list("data", flat=True))
