"""Replaces secrets in the log lines of Drover: those of live runs, and known shapes of tokens."""

import re

from agents_app.redaction.redact import Redactor

_SHAPES = {
    "GitHub token": r"gh[pousr]_[A-Za-z0-9]{30,}|github_pat_[A-Za-z0-9_]{20,}",
    "Slack token": r"xox[abeoprs]-[A-Za-z0-9-]{10,}",
    "API key": r"sk-[A-Za-z0-9_-]{16,}",
    "AWS key": r"(?:AKIA|ASIA)[A-Z0-9]{16}",
    "run token": r"drover_run_[0-9]+_[A-Za-z0-9_-]{43}",
    "API token": r"drover_[A-Za-z0-9_-]{43}",
    "private key": r"-----BEGIN [A-Z ]*PRIVATE KEY-----.*?(?:-----END [A-Z ]*KEY-----|\Z)",
}
_NAMES = {f"_{number}": name for number, name in enumerate(_SHAPES)}
_SHAPE = re.compile(
    "|".join(f"(?P<{group}>{_SHAPES[name]})" for group, name in _NAMES.items()), re.DOTALL
)
# Searched first: the regular expression takes ten times as long to find nothing.
_HINTS = ("gh", "github_pat_", "xox", "sk-", "AKIA", "ASIA", "drover_", "-----BEGIN")
# By the id of each run in this process that was given credentials.
_live: dict[int, Redactor] = {}


def add_redactor(run_id: int, redactor: Redactor) -> Redactor:
    """Log lines are cleaned of the secrets of the run until `remove_redactor`."""
    _live[run_id] = redactor
    return redactor


def remove_redactor(run_id: int) -> None:
    _live.pop(run_id, None)


def clean_line(line: str) -> str:
    if _live:
        # A copy: another thread may start or end a run at the same time.
        for redactor in list(_live.values()):
            line = redactor.clean_text(line)
    return _SHAPE.sub(_mark, line) if any(hint in line for hint in _HINTS) else line


def _mark(found: re.Match[str]) -> str:
    return f"[redacted {_NAMES[found.lastgroup or '_0']}]"
