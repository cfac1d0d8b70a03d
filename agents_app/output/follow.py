"""Follows a run's output and a work item's runs by looking at their rows now and then."""

import re
from collections.abc import Iterable, Iterator
from time import sleep

from agents_app.clock import local
from agents_app.models import Run, WorkItem
from agents_app.output.printed import Output, Piece

LOOK_EVERY_SECONDS = 0.25
# Not splitlines(), which also cuts at characters that no terminal takes for a line's end.
_LINE = re.compile(r"[^\n]*\n|[^\n]+")


def output_until_end(run_id: int) -> Iterator[Piece]:
    output = Output(run_id)
    while True:
        # Asked before reading: what a run printed is stored before or with its end.
        goes_on = Run.objects.filter(pk=run_id, slot__isnull=False).exists()
        yield from output.read()
        if not goes_on:
            break
        sleep(LOOK_EVERY_SECONDS)
    yield from output.rest()


def runs_of(work_item_id: int) -> Iterator[int]:
    """Each run of the item when it exists, retries too, until the item is settled."""
    last = 0
    while True:
        state = WorkItem.objects.values_list("state", flat=True).get(pk=work_item_id)
        run = Run.objects.filter(work_item=work_item_id, pk__gt=last).order_by("pk").first()
        if run is not None:
            last = run.pk
            yield run.pk
        elif state not in {WorkItem.State.QUEUED, WorkItem.State.ADMITTED}:
            return
        else:
            sleep(LOOK_EVERY_SECONDS)


def as_lines(pieces: Iterable[Piece], *, times: bool = False) -> Iterator[str]:
    """What a terminal gets: the time before each line, if wanted, and an end to the last one."""
    at_start = True
    for piece in pieces:
        if lines := _LINE.findall(piece.text):
            stamp = f"{local(piece.at)}  " if times else ""
            yield (stamp if at_start else "") + stamp.join(lines)
            at_start = lines[-1].endswith("\n")
    if not at_start:
        yield "\n"
