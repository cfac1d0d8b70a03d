"""Evaluates rules against a snapshot of the fleet and performs their actions.

Belongs here: snapshot, decision, actions and their outcome.
Does not belong here: the text of rules (rules.language).
"""

from agents_app.rules.engine.dry_run import DryRunResult, dry_run_rules
from agents_app.rules.engine.executor import ActionExecutor
from agents_app.rules.engine.listing import (
    RuleLine,
    book_of,
    file_label,
    indicator,
    line_of,
    rule_lines,
    source_of,
    unread_file_notice,
)
from agents_app.rules.engine.silence import (
    end_silence,
    silence_as_dict,
    silence_text,
    start_silence,
)
from agents_app.rules.engine.tick import evaluate_rules

__all__ = [
    "ActionExecutor",
    "DryRunResult",
    "RuleLine",
    "book_of",
    "dry_run_rules",
    "end_silence",
    "evaluate_rules",
    "file_label",
    "indicator",
    "line_of",
    "rule_lines",
    "silence_as_dict",
    "silence_text",
    "source_of",
    "start_silence",
    "unread_file_notice",
]
