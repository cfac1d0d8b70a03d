"""The output of several runs at once: whole lines, each under the name of who printed it."""

import heapq
from collections.abc import Iterable, Iterator
from io import StringIO
from time import sleep

from django.db.models import Max, Q, QuerySet

from agents_app.cli.screen import Screen
from agents_app.clock import local
from agents_app.models import Run
from agents_app.output import (
    LOOK_EVERY_SECONDS,
    Output,
    Piece,
    Progress,
    output_so_far,
    progress_of,
)

# Characters; one that is longer comes in parts, so that it need not be kept until it ends.
LONGEST_LINE = 1_000_000
# Red is kept for errors.
COLOURS = (
    *(("cyan",), ("green",), ("magenta",), ("yellow",), ("blue",)),
    *(("cyan", "bold"), ("green", "bold"), ("magenta", "bold"), ("yellow", "bold")),
)


class Voices:
    """The runs of some agents, those that start meanwhile, too."""

    def __init__(self, runs: "QuerySet[Run]") -> None:
        self._runs = runs.order_by("pk")
        self._newest = runs.aggregate(newest=Max("pk"))["newest"] or 0
        self._open: dict[int, Output] = {}
        self.agents: dict[int, str] = {}

    def heard(self) -> Iterator[Piece | Progress]:
        """What was printed since the last look, and how runs ended."""
        self._meet_new_ones()
        for run_id, progress in progress_of(list(self._open)).items():
            if progress.seq > self._open[run_id].seq:
                yield from self._open[run_id].read()
            if progress.ended:
                yield from self._open.pop(run_id).rest()
                yield progress

    def for_ever(self) -> Iterator[Piece | Progress]:
        while True:
            yield from self.heard()
            sleep(LOOK_EVERY_SECONDS)

    def _meet_new_ones(self) -> None:
        # By their number, too: a run may begin and end between two looks.
        met = self._runs.filter(Q(slot__isnull=False) | Q(pk__gt=self._newest))
        for run_id, agent in met.exclude(pk__in=self._open).values_list("pk", "agent__name"):
            self._open[run_id], self.agents[run_id] = Output(run_id), agent
            self._newest = max(self._newest, run_id)


def together(run_ids: Iterable[int]) -> Iterator[Piece]:
    """What they printed so far, in the order of time."""
    return heapq.merge(*map(output_so_far, run_ids), key=lambda piece: piece.at)


class LabelledLines:
    """Whole lines only: two that print at once would tear each other's apart."""

    def __init__(self) -> None:
        self._begun: dict[tuple[int, str], StringIO] = {}

    def of(self, piece: Piece) -> list[str]:
        key = piece.run, piece.stream
        *ended, rest = piece.text.split("\n")
        lines = [self._taken(key) + end for end in ended]
        if rest:
            begun = self._begun.setdefault(key, StringIO())
            begun.write(rest)
            if begun.tell() >= LONGEST_LINE:
                lines.append(self._taken(key))
        return lines

    def rest(self, run_id: int) -> list[tuple[str, str]]:
        """What never got its end, with its stream."""
        keys = [key for key in self._begun if key[0] == run_id]
        return [(key[1], self._taken(key)) for key in keys]

    def _taken(self, key: tuple[int, str]) -> str:
        begun = self._begun.pop(key, None)
        return begun.getvalue() if begun else ""


class Chorus:
    """Prints the lines of several agents, each in its own colour."""

    def __init__(self, screen: Screen, agents: Iterable[str], *, times: bool) -> None:
        self._screen, self._times = screen, times
        names = sorted(agents)
        self._width = max(map(len, names), default=0)
        self._colours = {name: COLOURS[n % len(COLOURS)] for n, name in enumerate(names)}
        self._lines = LabelledLines()

    def sing(self, agent: str, piece: Piece) -> None:
        for line in self._lines.of(piece):
            self._print(agent, piece.run, piece.stream, line, f"{local(piece.at)}  ")

    def end(self, agent: str, run_id: int) -> None:
        for stream, line in self._lines.rest(run_id):
            self._print(agent, run_id, stream, line, "")

    def _print(self, agent: str, run_id: int, stream: str, line: str, stamp: str) -> None:
        colour = self._colours.get(agent, COLOURS[0])
        label = self._screen.painted(f"{agent:{self._width}} {run_id} |", *colour)
        text = self._screen.painted(line, "red") if stream == "stderr" else line
        self._screen.text(f"{stamp if self._times else ''}{label} {text}\n")
