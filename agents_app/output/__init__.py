"""The output of runs: buffered, numbered, stored, read as lines.

Belongs here: everything between the bytes of a program and the lines on a screen.
Does not belong here: redaction of secrets (redaction).
"""

from agents_app.output.buffer import MARKER_STREAM
from agents_app.output.lines import Excerpt, LogLine
from agents_app.output.progress import (
    POLL_SECONDS,
    Progress,
    StillRunning,
    lines_until_end,
    progress_of,
    runs_of_work_item,
    text_until_end,
)
from agents_app.output.reader import (
    LogReader,
    last_lines,
    lines_after,
    lines_before,
    stored_lines,
    whole_text,
)
from agents_app.output.transcript import Transcript, UnstoredOutputSink
from agents_app.output.watchers import STDOUT, LineSplitter, ProgramOutputEnd, WatchedSink

__all__ = [
    "MARKER_STREAM",
    "POLL_SECONDS",
    "STDOUT",
    "Excerpt",
    "LineSplitter",
    "LogLine",
    "LogReader",
    "ProgramOutputEnd",
    "Progress",
    "StillRunning",
    "Transcript",
    "UnstoredOutputSink",
    "WatchedSink",
    "last_lines",
    "lines_after",
    "lines_before",
    "lines_until_end",
    "progress_of",
    "runs_of_work_item",
    "stored_lines",
    "text_until_end",
    "whole_text",
]
