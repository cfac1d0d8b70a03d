"""Kinds of work sources: GitHub, Linear, Jira and directories behind one small contract.

Belongs here: settings, requests and answers of each system, retries, and the marks of claims.
Does not belong here: tables, polls and claims as rows (work_sources).
"""

from agents_app.work_sources.kinds.api import ApiError, HttpReply, Send, WorkSourceError
from agents_app.work_sources.kinds.contract import (
    Candidate,
    ClaimMark,
    ClaimResult,
    Fetched,
    FetchOptions,
    ItemOutcome,
    ItemReport,
    SourceAccess,
    SourceClient,
    SourceKind,
    WorkDetails,
    by_priority,
)
from agents_app.work_sources.kinds.table import KINDS, read_settings

__all__ = [
    "KINDS",
    "ApiError",
    "Candidate",
    "ClaimMark",
    "ClaimResult",
    "FetchOptions",
    "Fetched",
    "HttpReply",
    "ItemOutcome",
    "ItemReport",
    "Send",
    "SourceAccess",
    "SourceClient",
    "SourceKind",
    "WorkDetails",
    "WorkSourceError",
    "by_priority",
    "read_settings",
]
