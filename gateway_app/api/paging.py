"""Pages of long lists: a cursor names the last row, so new and deleted rows shift nothing."""

import base64
import binascii
import json
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

from django.db.models import Model, QuerySet
from pydantic import Field

from gateway_app.access import Invalid
from gateway_app.api.fields import LARGEST_KEY, Filters

M = TypeVar("M", bound=Model)
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
        side = "lt" if order.startswith("-") else "gt"
        rows = rows.filter(**{f"{column}__{side}": _read(filters.cursor, order)})
    # One more row than requested shows whether there is a next page.
    found = list(rows.order_by(order)[: filters.limit + 1])
    shown = found[: filters.limit]
    more = len(found) > len(shown)
    return Page(shown, cursor_at(getattr(shown[-1], column), order) if more else None)


def cursor_at(value: Any, order: str) -> str:
    return base64.urlsafe_b64encode(json.dumps([order, value]).encode()).decode().rstrip("=")


def _read(cursor: str, order: str) -> Any:
    try:
        padded = cursor.encode("ascii") + b"=" * (-len(cursor) % 4)
        of, value = json.loads(base64.b64decode(padded, altchars=b"-_", validate=True))
    except (binascii.Error, ValueError, TypeError, RecursionError):
        of, value = None, None
    if of != order or not _fits(value, order):
        raise Invalid("cursor: expected the next_cursor of an earlier page of this list")
    return value


def _fits(value: Any, order: str) -> bool:
    if order.endswith("name"):
        return isinstance(value, str) and "\0" not in value
    return type(value) is int and 0 <= value <= LARGEST_KEY
