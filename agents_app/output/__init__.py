"""The output of runs: buffered, stored, read as lines.

Belongs here: everything between the bytes of a program and the lines people read.
Does not belong here: redaction of secrets (redaction).
"""

from agents_app.output.buffer import MARKER_STREAM
from agents_app.output.follow import LOOK_EVERY_SECONDS, as_lines, output_until_end, runs_of
from agents_app.output.lines import (
    LogCutter,
    LogLine,
    Stretch,
    fed_from,
    last_lines,
    lines_after,
    lines_before,
)
from agents_app.output.printed import Output, Piece, Progress, output_so_far, progress_of
from agents_app.output.rows import output_segments, output_segments_after
from agents_app.output.transcript import AfterWhatIsStored, Transcript
from agents_app.output.watchers import STDOUT, LineSplitter, WatchedSink

__all__ = [
    "LOOK_EVERY_SECONDS",
    "MARKER_STREAM",
    "STDOUT",
    "AfterWhatIsStored",
    "LineSplitter",
    "LogCutter",
    "LogLine",
    "Output",
    "Piece",
    "Progress",
    "Stretch",
    "Transcript",
    "WatchedSink",
    "as_lines",
    "fed_from",
    "last_lines",
    "lines_after",
    "lines_before",
    "output_segments",
    "output_segments_after",
    "output_so_far",
    "output_until_end",
    "progress_of",
    "runs_of",
]
