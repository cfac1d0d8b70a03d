"""Pages of long lists: a cursor names the last row, so new and deleted rows shift nothing."""

import base64
import binascii
import json
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any, Generic, TypeVar

from django.db.models import Model, Q, QuerySet
from pydantic import Field

from gateway_app.access import Invalid
from gateway_app.api.fields import LARGEST_KEY, LAST_SECOND, Filters

M = TypeVar("M", bound=Model)
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
CURSOR = "The `next_cursor` of the previous page."
NEXT_CURSOR = Field(description="The `cursor` of the next page; null on the last page.")


class PageFilters(Filters):
    limit: int = Field(50, ge=1, le=200)
    cursor: str | None = Field(None, max_length=300, description=CURSOR)


@dataclass(frozen=True, slots=True)
class Page(Generic[M]):
    rows: list[M]
    next_cursor: str | None


def page_of(rows: "QuerySet[M]", order: str, filters: PageFilters) -> Page[M]:
    """`order` is a unique column, with a minus for descending order."""
    column = order.removeprefix("-")
    if filters.cursor is not None:
        fits = _is_text if column == "name" else _is_key
        side = "lt" if order.startswith("-") else "gt"
        rows = rows.filter(**{f"{column}__{side}": _read(filters.cursor, order, fits)})
    # One more row than requested shows whether there is a next page.
    found = list(rows.order_by(order)[: filters.limit + 1])
    shown = found[: filters.limit]
    more = len(found) > len(shown)
    return Page(shown, cursor_at(getattr(shown[-1], column), order) if more else None)


def page_by_time(rows: "QuerySet[M]", column: str, filters: PageFilters) -> Page[M]:
    """The newest first: ordered by a column of times, then by the key."""
    order = f"-{column}"
    if filters.cursor is not None:
        micros, key = _read(filters.cursor, order, _is_moment)
        at = _EPOCH + timedelta(microseconds=micros)
        rows = rows.filter(Q(**{f"{column}__lt": at}) | Q(**{column: at, "pk__lt": key}))
    found = list(rows.order_by(order, "-pk")[: filters.limit + 1])
    shown = found[: filters.limit]
    if len(found) == len(shown):
        return Page(shown, None)
    micros = (getattr(shown[-1], column) - _EPOCH) // timedelta(microseconds=1)
    return Page(shown, cursor_at([micros, shown[-1].pk], order))


def cursor_at(value: Any, order: str) -> str:
    return base64.urlsafe_b64encode(json.dumps([order, value]).encode()).decode().rstrip("=")


def _read(cursor: str, order: str, fits: Callable[[Any], bool]) -> Any:
    try:
        padded = cursor.encode("ascii") + b"=" * (-len(cursor) % 4)
        of, value = json.loads(base64.b64decode(padded, altchars=b"-_", validate=True))
    except (binascii.Error, ValueError, TypeError, RecursionError):
        of, value = None, None
    if of != order or not fits(value):
        raise Invalid("cursor: expected the next_cursor of an earlier page of this list")
    return value


def _is_text(value: Any) -> bool:
    return isinstance(value, str) and "\0" not in value


def _is_key(value: Any) -> bool:
    return type(value) is int and 0 <= value <= LARGEST_KEY


def _is_moment(value: Any) -> bool:
    """Microseconds since 1970, and a key."""
    if not isinstance(value, list) or len(value) != 2:
        return False
    micros, key = value
    return _is_key(key) and type(micros) is int and 0 <= micros <= LAST_SECOND * 1_000_000
