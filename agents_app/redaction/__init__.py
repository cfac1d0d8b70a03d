"""Removes secrets from output and log lines, in every encoding.

Belongs here: finding and replacing secret values in bytes.
Does not belong here: storing secrets (secrets).
"""

from agents_app.redaction import log_filter
from agents_app.redaction.log_filter import clean_line
from agents_app.redaction.parts import SHORTEST_LINE, SHORTEST_SECRET, secret_parts
from agents_app.redaction.redact import RedactingRunner, Redactor

__all__ = [
    "SHORTEST_LINE",
    "SHORTEST_SECRET",
    "RedactingRunner",
    "Redactor",
    "clean_line",
    "log_filter",
    "secret_parts",
]
