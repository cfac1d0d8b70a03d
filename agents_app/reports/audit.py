"""The audit: who did what and when, from the journal and the admin's log.

Entries of the journal without an actor are left out: they happen by themselves, such as the end of
a run.
"""

import heapq
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from itertools import islice
from typing import Any

from django.apps import apps
from django.db.models import Model, Q, QuerySet

from agents_app.errors import NotFound
from agents_app.models import DEFAULT_TENANT, RunEvent, Tenant

_CHUNK = 500
_LONGEST_KEY = 18
# Tables whose changes only the admin's log has.
_LOGGED_APPS = ("auth", "django_celery_beat")
_VERBS = {1: "added", 2: "changed", 3: "deleted"}


@dataclass(frozen=True, slots=True)
class AuditEntry:
    """`id` is unique, so that entries that were read twice can be recognised."""

    at: datetime
    id: str
    tenant: str
    who: str
    what: str
    agent: str | None
    run_id: int | None
    detail: str

    def as_json(self) -> dict[str, Any]:
        at = self.at.astimezone(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
        return {
            **{"at": at, "id": self.id, "tenant": self.tenant, "who": self.who, "what": self.what},
            **{"agent": self.agent, "run_id": self.run_id, "detail": self.detail},
        }


@dataclass(frozen=True, slots=True)
class AuditPeriod:
    """`since` belongs to the period, `until` does not; None: no limit."""

    since: datetime | None = None
    until: datetime | None = None

    def condition(self, column: str) -> Q:
        within = Q()
        if self.since is not None:
            within &= Q(**{f"{column}__gte": self.since})
        if self.until is not None:
            within &= Q(**{f"{column}__lt": self.until})
        return within


@dataclass(frozen=True, slots=True)
class _Table:
    """The rows of a tenant in a table that has entries of the audit."""

    prefix: str
    rows: "QuerySet[Any]"
    column: str
    entry_of: Callable[[Any], AuditEntry]

    def read(self, within: Q, limit: int | None) -> Iterator[AuditEntry]:
        rows = self.rows.filter(within).order_by(self.column, "pk")[:limit]
        return (self.entry_of(row) for row in rows.iterator(_CHUNK))


def read_audit(
    tenant: Tenant | None, period: AuditPeriod, limit: int | None = None, after: str = ""
) -> Iterator[AuditEntry]:
    """The entries of a tenant, or of all tenants, in the order of their time; of equal times the
    journal first, then by key. `after` is the id of the entry after which the reader continues.

    Users, groups and logins belong to the installation, which the tenant `default` manages."""
    events = RunEvent.objects.exclude(actor="").select_related("tenant", "agent")
    own = events if tenant is None else events.filter(tenant=tenant)
    tables = [_Table("event", own, "at", _entry_of_event)]
    if tenant is None or tenant.name == DEFAULT_TENANT:
        tables.append(_Table("admin", _admin_log(), "action_time", _entry_of_change))
    later = _after(tables, after) if after else [Q()] * len(tables)
    found = [
        table.read(period.condition(table.column) & rest, limit)
        for table, rest in zip(tables, later, strict=True)
    ]
    # Of equal times the entries of the first table come first.
    return islice(heapq.merge(*found, key=lambda entry: entry.at), limit)


def _after(tables: Sequence[_Table], entry_id: str) -> list[Q]:
    """For each table the condition on rows that come after the entry in the order of the audit."""
    prefix, _, key = entry_id.partition("-")
    place = next((n for n, table in enumerate(tables) if table.prefix == prefix), None)
    row = None
    if place is not None and key.isascii() and key.isdigit() and len(key) <= _LONGEST_KEY:
        row = tables[place].rows.filter(pk=int(key)).first()
    if place is None or row is None:
        raise NotFound(
            f"no entry {entry_id[:40]!r} in the audit; if it was deleted since, continue with "
            "the time of the last entry as since"
        )
    at = getattr(row, tables[place].column)
    conditions = []
    for number, table in enumerate(tables):
        later = Q(**{f"{table.column}__gt": at})
        if number >= place:
            from_then = Q(**{f"{table.column}__gte": at})
            # Both conditions: the first is where the scan of an index begins.
            later = from_then & (later | Q(pk__gt=row.pk)) if number == place else from_then
        conditions.append(later)
    return conditions


def _entry_of_event(event: RunEvent) -> AuditEntry:
    return AuditEntry(
        at=event.at,
        id=f"event-{event.pk}",
        tenant=event.tenant.name,
        who=event.actor,
        what=event.name,
        agent=event.agent.name if event.agent else None,
        run_id=event.run_id,
        detail=event.detail,
    )


def _admin_log() -> "QuerySet[Any]":
    """Changes of users, groups and periodic tasks by forms of the admin."""
    # Workers have no admin.
    model: type[Model] = apps.get_model("admin", "LogEntry")
    rows = model._default_manager.filter(content_type__app_label__in=_LOGGED_APPS)
    return rows.select_related("user", "content_type")


def _entry_of_change(row: Any) -> AuditEntry:
    what = f"{row.content_type.model}.{_VERBS.get(row.action_flag, 'changed')}"
    detail = ": ".join(filter(None, [row.object_repr, row.get_change_message()]))
    return AuditEntry(
        *(row.action_time, f"admin-{row.pk}", DEFAULT_TENANT, row.user.get_username(), what),
        *(None, None, detail),
    )
