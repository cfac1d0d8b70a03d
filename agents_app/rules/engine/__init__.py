"""Evaluates rules against a snapshot of the fleet and performs their actions.

Belongs here: snapshot, decision, actions and their outcome.
Does not belong here: the text of rules (rules.language).
"""

from agents_app.rules.engine.doing import ActionExecutor
from agents_app.rules.engine.listing import (
    RuleLine,
    book_of,
    indicator,
    line_of,
    not_read_yet,
    rule_lines,
    silence_text,
    silence_told,
    source_of,
)
from agents_app.rules.engine.rehearse import Rehearsed, dry_run_rules
from agents_app.rules.engine.silence import end_silence, start_silence
from agents_app.rules.engine.tick import evaluate_rules

__all__ = [
    "ActionExecutor",
    "Rehearsed",
    "RuleLine",
    "book_of",
    "dry_run_rules",
    "end_silence",
    "evaluate_rules",
    "indicator",
    "line_of",
    "not_read_yet",
    "rule_lines",
    "silence_text",
    "silence_told",
    "source_of",
    "start_silence",
]
