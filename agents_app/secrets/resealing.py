"""After a new key was put first: everything is sealed with it, and the old one may go."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

from django.db.models import QuerySet

from agents_app.database import in_transaction
from agents_app.models import Credential, WebhookSecret
from agents_app.secrets.sealing import BrokenSeal, keys, keys_again, reseal

Tell = Callable[[str, int], None]
ROWS_AT_ONCE = 100


@dataclass(frozen=True, slots=True)
class Resealed:
    done: int = 0
    # Their key is not among ours: they must be given again.
    broken: tuple[str, ...] = ()


def reseal_all(tell: Tell = lambda _what, _done: None) -> dict[str, Resealed]:
    """In bites, so that nobody waits for them; what is interrupted goes on where it was."""
    keys_again()
    rows: dict[str, QuerySet[Any]] = {
        "credentials": Credential.objects.all(),
        "webhook secrets": WebhookSecret.objects.all(),
    }
    return {what: _reseal(what, kept, tell) for what, kept in rows.items()}


def _reseal(what: str, kept: "QuerySet[Any]", tell: Tell) -> Resealed:
    done, broken = 0, list[str]()
    for rows in _bites(kept.exclude(key_id=keys().first_id)):
        fresh = {row: sealed for row in rows if (sealed := _resealed(row))}
        broken += [str(row) for row in rows if row not in fresh]
        done += in_transaction(lambda fresh=fresh: _store(kept, fresh))  # type: ignore[misc]
        tell(what, done)
    return Resealed(done, tuple(broken))


def _bites(rows: "QuerySet[Any]") -> Iterator[list[Any]]:
    last = 0
    while found := list(rows.filter(pk__gt=last).order_by("pk")[:ROWS_AT_ONCE]):
        last = found[-1].pk
        yield found


def _resealed(row: Credential | WebhookSecret) -> str:
    try:
        return reseal(keys(), row.sealed)
    except BrokenSeal:
        return ""


def _store(kept: "QuerySet[Any]", fresh: dict[Any, str]) -> int:
    # Unless it was replaced meanwhile, which seals it with the first key anyway.
    return sum(
        kept.filter(pk=row.pk, sealed=row.sealed).update(sealed=text, key_id=keys().first_id)
        for row, text in fresh.items()
    )
