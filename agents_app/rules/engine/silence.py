"""Silence: rules say nothing to agents meanwhile; all else that they do, they do."""

from datetime import datetime

from agents_app.database import in_transaction
from agents_app.errors import Refused
from agents_app.events import journal
from agents_app.models import RuleBook, Tenant


def start_silence(
    tenant: Tenant, by: str, now: datetime, until: datetime | None = None
) -> RuleBook:
    """Without an end it lasts until somebody ends it; it lasts across restarts."""
    if until is not None and until <= now:
        raise Refused("the end of the silence is over already: give a time to come")

    def change() -> RuleBook:
        columns = {"silenced_at": now, "silent_until": until, "silenced_by": by[:200]}
        book, _ = RuleBook.objects.update_or_create(tenant=tenant, defaults=columns)
        about = f"{by}: until {until:%Y-%m-%d %H:%M %Z}" if until else by
        journal.record(journal.JournalEntry("rules.silenced", now, tenant.pk, detail=about))
        return book

    return in_transaction(change)


def end_silence(tenant: Tenant, by: str, now: datetime) -> bool:
    """False if there was none."""

    def change() -> bool:
        silent = RuleBook.objects.filter(tenant=tenant, silenced_at__isnull=False)
        book = silent.first()
        ended = book is not None and book.is_silent(now)
        silent.update(silenced_at=None, silent_until=None, silenced_by="")
        if ended:
            journal.record(journal.JournalEntry("rules.heard", now, tenant.pk, detail=by))
        return ended

    return in_transaction(change)
