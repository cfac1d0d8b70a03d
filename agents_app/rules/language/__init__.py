"""The language of scheduler.rules: text to rules and back.

Belongs here: parsing, checking and printing rules.
Does not belong here: rows, clocks and actions (rules.engine).
"""

from agents_app.rules.language.analysis import (
    RequiredData,
    named_agents,
    required_data,
    rule_warnings,
    started_agents,
)
from agents_app.rules.language.line_reader import printable_line
from agents_app.rules.language.parse import parse_stored
from agents_app.rules.language.rule import (
    REQUESTED_BY_PREFIX,
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
    SendMessage,
    ShellCommand,
    Snapshot,
    Summon,
    Targets,
    Trigger,
)
from agents_app.rules.language.source import (
    FILE_NAME,
    RulesSource,
    parse_source,
    problem_with_position,
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
from agents_app.rules.language.timing import backoff, due_after_failure, next_due, ticks_were_missed

__all__ = [
    "FILE_NAME",
    "REQUESTED_BY_PREFIX",
    "Action",
    "AgentState",
    "AliveCondition",
    "BudgetCondition",
    "Condition",
    "Every",
    "IdleCondition",
    "Pause",
    "QueueCondition",
    "Release",
    "RequiredData",
    "Resume",
    "Rule",
    "RulesSource",
    "Scale",
    "SendMessage",
    "ShellCommand",
    "Snapshot",
    "Summon",
    "Targets",
    "Trigger",
    "action_text",
    "backoff",
    "conditions_text",
    "due_after_failure",
    "duration_text",
    "named_agents",
    "next_due",
    "parse_source",
    "parse_stored",
    "printable_line",
    "problem_with_position",
    "read_source",
    "required_data",
    "rule_text",
    "rule_warnings",
    "source_of_text",
    "span_text",
    "started_agents",
    "ticks_were_missed",
    "trigger_text",
]
