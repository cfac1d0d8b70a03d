"""The tools that Drover can start and read, by the agent's `harness`.

Belongs here: the argv of a tool and the reader of its output.
Does not belong here: starting processes (runners), caps on usage (budgets).
"""

from agents_app.harness.base import Harness, OutputReader, Report, events
from agents_app.harness.claude_code import CLAUDE_CODE
from agents_app.harness.codex import CODEX
from agents_app.harness.shell import SCRIPT, SHELL
from agents_app.harness.usage import MOST_TOKENS, MOST_USD, Spending, cost

__all__ = [
    "HARNESSES",
    "MOST_TOKENS",
    "MOST_USD",
    "SCRIPT",
    "Harness",
    "OutputReader",
    "Report",
    "Spending",
    "cost",
    "events",
]

HARNESSES: dict[str, Harness] = {
    "claude-code": CLAUDE_CODE,
    "codex": CODEX,
    "shell": SHELL,
}
