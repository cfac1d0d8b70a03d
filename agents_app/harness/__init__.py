"""The tools that Drover knows how to call and to read: a registry by the agent's `harness`."""

from agents_app.harness.base import Harness, Reader, Report, events
from agents_app.harness.claude_code import CLAUDE_CODE
from agents_app.harness.codex import CODEX
from agents_app.harness.shell import SCRIPT, SHELL

__all__ = ["HARNESSES", "SCRIPT", "Harness", "Reader", "Report", "events"]

HARNESSES: dict[str, Harness] = {
    "claude-code": CLAUDE_CODE,
    "codex": CODEX,
    "shell": SHELL,
}
