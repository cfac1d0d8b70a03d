"""Changes webhook sources and their secrets; each change is recorded in the journal."""

from collections.abc import Collection, Mapping
from datetime import datetime

from django.db import IntegrityError
from django.db.models import F

from agents_app.database import in_transaction
from agents_app.errors import Refused
from agents_app.events import add_to_totals, journal
from agents_app.models import WebhookSecret, WebhookSource
from agents_app.secrets import keys, seal
from agents_app.webhooks.refused import RefusedRequest, store_refused

SHORTEST_SECRET = 8


def address_of(source: WebhookSource) -> str:
    """The path to which a sender posts the deliveries of the source."""
    return f"/webhooks/{source.type}/{source.name}"


def add_secret(
    source: WebhookSource, name: str, secret: str, by: str, now: datetime
) -> WebhookSecret:
    """Adds a secret; the other secrets of the source stay valid until they are revoked."""
    if len(secret) < SHORTEST_SECRET:
        raise Refused(f"the secret is too short: use at least {SHORTEST_SECRET} characters")
    sealed = seal(keys(), source.tenant_id, name, secret)

    def change() -> WebhookSecret:
        row = WebhookSecret.objects.create(
            tenant_id=source.tenant_id,
            source=source,
            name=name,
            sealed=sealed,
            key_id=keys().first_id,
            created_at=now,
        )
        _record_change("webhook.secret_added", source, f"{source.name}/{name}", by, now)
        return row

    try:
        return in_transaction(change)
    except IntegrityError:
        raise Refused(
            f"{source.name} already has a secret {name!r}: choose another name, or revoke it first"
        ) from None


def revoke_secret(secret: WebhookSecret, by: str, now: datetime) -> bool:
    """Every gateway refuses the secret within a second; False if it was revoked before."""
    active = WebhookSecret.objects.filter(pk=secret.pk, revoked_at__isnull=True)

    def change() -> bool:
        revoked = active.update(revoked_at=now) == 1
        if revoked:
            about = f"{secret.source.name}/{secret.name}"
            _record_change("webhook.secret_revoked", secret.source, about, by, now)
        return revoked

    return in_transaction(change)


def save_source(source: WebhookSource, by: str, now: datetime) -> None:
    """Saves a new source or one created in the admin; a source of config.toml is left as is."""

    def change() -> None:
        if source.pk is None or source.origin == WebhookSource.Origin.PERSON:
            source.save()
            _record_change("webhook.source_saved", source, source.name, by, now)

    in_transaction(change)


def set_enabled(source: WebhookSource, by: str, now: datetime, *, on: bool) -> bool:
    """Enables or disables a source: while it is disabled, senders get the answer of a
    source that does not exist.

    False if the source already was in that state."""
    rows = WebhookSource.objects.filter(pk=source.pk, disabled_at__isnull=not on)

    def change() -> bool:
        changed = rows.update(disabled_at=None if on else now) == 1
        if changed:
            about = f"{source.name} {'enabled' if on else 'disabled'}"
            _record_change("webhook.source_switched", source, about, by, now)
        return changed

    return in_transaction(change)


def record_refused(
    counts: Mapping[int, int],
    reasons: Mapping[tuple[str, str], int],
    requests: Collection[RefusedRequest],
    now: datetime,
) -> None:
    """Adds refused requests to the counts of their sources and to the totals by provider and
    reason, and stores some of them as deliveries. Sources that were deleted are left out."""

    def change() -> None:
        # The update locks the rows: a source that exists now is not deleted before the commit.
        existing = {
            source_id
            for source_id, count in sorted(counts.items())
            if WebhookSource.objects.filter(pk=source_id).update(
                refused_count=F("refused_count") + count, last_refused_at=now
            )
        }
        add_to_totals({("deliveries_refused", *why): count for why, count in reasons.items()})
        store_refused([each for each in requests if each.source.id in existing])

    if reasons:
        in_transaction(change)


def _record_change(name: str, source: WebhookSource, about: str, by: str, now: datetime) -> None:
    detail = f"{by}: {about}"
    journal.record(journal.JournalEntry(name, now, source.tenant_id, detail=detail, actor=by))
