"""Seals all stored secrets again with the first key, so that older keys can be removed."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

from django.db.models import QuerySet

from agents_app.database import in_transaction
from agents_app.models import Credential, WebhookSecret
from agents_app.secrets.sealing import BrokenSeal, keys, reload_keys, reseal

ReportProgress = Callable[[str, int], None]
BATCH_ROWS = 100


@dataclass(frozen=True, slots=True)
class Resealed:
    done: int = 0
    # Names of secrets whose key is missing; they must be set again.
    broken: tuple[str, ...] = ()


def reseal_all(report_progress: ReportProgress = lambda _what, _done: None) -> dict[str, Resealed]:
    """Seal in batches, so that locks are short; an interrupted call can be repeated."""
    reload_keys()
    rows: dict[str, QuerySet[Any]] = {
        "credentials": Credential.objects.all(),
        "webhook secrets": WebhookSecret.objects.all(),
    }
    return {what: _reseal(what, table, report_progress) for what, table in rows.items()}


def _reseal(what: str, table: "QuerySet[Any]", report_progress: ReportProgress) -> Resealed:
    done, broken = 0, list[str]()
    for rows in _batches(table.exclude(key_id=keys().first_id)):
        fresh = {row: sealed for row in rows if (sealed := _resealed(row))}
        broken += [str(row) for row in rows if row not in fresh]
        done += in_transaction(lambda fresh=fresh: _store(table, fresh))  # type: ignore[misc]
        report_progress(what, done)
    return Resealed(done, tuple(broken))


def _batches(rows: "QuerySet[Any]") -> Iterator[list[Any]]:
    last = 0
    while found := list(rows.filter(pk__gt=last).order_by("pk")[:BATCH_ROWS]):
        last = found[-1].pk
        yield found


def _resealed(row: Credential | WebhookSecret) -> str:
    try:
        return reseal(keys(), row.sealed)
    except BrokenSeal:
        return ""


def _store(table: "QuerySet[Any]", fresh: dict[Any, str]) -> int:
    # Conditional: a secret that was replaced meanwhile has the first key already.
    return sum(
        table.filter(pk=row.pk, sealed=row.sealed).update(sealed=text, key_id=keys().first_id)
        for row, text in fresh.items()
    )
