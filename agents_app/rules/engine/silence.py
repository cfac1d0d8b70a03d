"""Silence: while it lasts, rules send no messages to agents; other actions are performed."""

from datetime import datetime
from typing import Any

from agents_app.database import in_transaction
from agents_app.errors import Refused
from agents_app.events import journal
from agents_app.models import RuleBook, Tenant


def start_silence(
    tenant: Tenant, by: str, now: datetime, until: datetime | None = None
) -> RuleBook:
    """Start or change the silence; without an end it lasts until `end_silence`."""
    if until is not None and until <= now:
        raise Refused("the end of the silence is in the past: give a time in the future")

    def change() -> RuleBook:
        columns = {"silenced_at": now, "silent_until": until, "silenced_by": by[:200]}
        book, _ = RuleBook.objects.update_or_create(tenant=tenant, defaults=columns)
        detail = f"{by}: until {until:%Y-%m-%d %H:%M %Z}" if until else by
        entry = journal.JournalEntry("rules.silenced", now, tenant.pk, detail=detail, actor=by)
        journal.record(entry)
        return book

    return in_transaction(change)


def end_silence(tenant: Tenant, by: str, now: datetime) -> bool:
    """End the silence; False if there was none."""

    def change() -> bool:
        silent = RuleBook.objects.filter(tenant=tenant, silenced_at__isnull=False)
        book = silent.first()
        ended = book is not None and book.is_silent(now)
        silent.update(silenced_at=None, silent_until=None, silenced_by="")
        if ended:
            entry = journal.JournalEntry("rules.heard", now, tenant.pk, detail=by, actor=by)
            journal.record(entry)
        return ended

    return in_transaction(change)


def silence_as_dict(book: RuleBook, now: datetime) -> dict[str, Any]:
    """The silence for the API and JSON output; a silence that has ended is not mentioned."""
    if not book.is_silent(now):
        return {"silent": False, "since": None, "until": None, "by": ""}
    since, until, by = book.silenced_at, book.silent_until, book.silenced_by
    return {"silent": True, "since": since, "until": until, "by": by}


def silence_text(book: RuleBook, now: datetime, until: str) -> str:
    """The silence as a sentence; `until` is its end as formatted for the reader."""
    if not book.is_silent(now):
        return "messages are sent"
    end = f"until {until}" if book.silent_until else "until it is ended"
    return f"messages are silenced {end} (by {book.silenced_by})"
