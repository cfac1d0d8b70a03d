"""The language of scheduler.rules: text to rules and back.

Belongs here: parsing, checking and printing rules.
Does not belong here: rows, clocks and actions (rules.engine).
"""

from agents_app.rules.language.errors import placed
from agents_app.rules.language.line import shown
from agents_app.rules.language.lint import warnings
from agents_app.rules.language.needs import Needs, concerned, needs_of, started_by
from agents_app.rules.language.parse import parse_stored
from agents_app.rules.language.rule import (
    BY_RULE,
    Action,
    AgentState,
    AliveCondition,
    BudgetCondition,
    Condition,
    Every,
    IdleCondition,
    Pause,
    QueueCondition,
    Release,
    Resume,
    Rule,
    Scale,
    Shell,
    Snapshot,
    Summon,
    Targets,
    Tell,
    Trigger,
)
from agents_app.rules.language.source import (
    FILE_NAME,
    RulesSource,
    parsed,
    read_source,
    source_of_text,
)
from agents_app.rules.language.text import (
    action_text,
    conditions_text,
    duration_text,
    rule_text,
    span_text,
    trigger_text,
)
from agents_app.rules.language.timing import backoff, due_after_failure, next_due, nobody_looked

__all__ = [
    "BY_RULE",
    "FILE_NAME",
    "Action",
    "AgentState",
    "AliveCondition",
    "BudgetCondition",
    "Condition",
    "Every",
    "IdleCondition",
    "Needs",
    "Pause",
    "QueueCondition",
    "Release",
    "Resume",
    "Rule",
    "RulesSource",
    "Scale",
    "Shell",
    "Snapshot",
    "Summon",
    "Targets",
    "Tell",
    "Trigger",
    "action_text",
    "backoff",
    "concerned",
    "conditions_text",
    "due_after_failure",
    "duration_text",
    "needs_of",
    "next_due",
    "nobody_looked",
    "parse_stored",
    "parsed",
    "placed",
    "read_source",
    "rule_text",
    "shown",
    "source_of_text",
    "span_text",
    "started_by",
    "trigger_text",
    "warnings",
]
