"""The audit: who did what and when, from the journal and the admin's log.

Entries of the journal about what happens by itself, such as the end of a run, are left out.
"""

import heapq
import re
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from itertools import islice
from typing import Any

from django.apps import apps
from django.db.models import Model, Q, QuerySet

from agents_app.models import DEFAULT_TENANT, RunEvent, Tenant

_CHUNK = 500
# Where the detail of an entry names the person, token, rule or run.
_FIRST = re.compile(r"(.*?)(?:: |\Z)", re.DOTALL)
_AFTER_NAME = re.compile(r".*?: (.*?)(?:: |\Z)", re.DOTALL)
_LAST = re.compile(r".*: (.*)", re.DOTALL)
_AFTER_BY = re.compile(r"(?:.*? )?by (.*)", re.DOTALL)
# The last one: a name may contain " from ", an address does not.
_BEFORE_FROM = re.compile(r"(.*) from ", re.DOTALL)
AUDITED = {
    **dict.fromkeys(
        (
            *("agent.paused", "agent.resumed", "agent.scaled", "agent.stopped"),
            *("credential.set", "credential.removed", "delivery.replayed", "project.scaled"),
            *("queue.cleared", "queue.restored", "rules.heard", "rules.silenced", "run.rerun"),
            *("scheduler.paused", "scheduler.resumed", "scheduler.stopping"),
            *("tenant.created", "tenant.disabled", "tenant.enabled"),
            *("token.created", "token.revoked", "token.rotated", "work.requested"),
            *("webhook.secret_added", "webhook.secret_revoked"),
            *("webhook.source_saved", "webhook.source_switched"),
        ),
        _FIRST,
    ),
    **dict.fromkeys(
        (
            "agent.forgotten",
            *("schedule.canceled", "schedule.created", "schedule.deleted", "schedule.edited"),
            *("schedule.paused", "schedule.resumed", "schedule.retried", "tenant.deleted"),
        ),
        _AFTER_NAME,
    ),
    "lock.broken": _LAST,
    **dict.fromkeys(
        ("agent.messaged", "run.stop_requested", "work.dropped", "work.restored"), _AFTER_BY
    ),
    **dict.fromkeys(("login.failed", "login.locked", "login.succeeded"), _BEFORE_FROM),
}
_STOP, _ITSELF = "run.stop_requested", "itself"
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

    def of(self, rows: "QuerySet[Any]", column: str) -> Iterator[Any]:
        within = Q()
        if self.since is not None:
            within &= Q(**{f"{column}__gte": self.since})
        if self.until is not None:
            within &= Q(**{f"{column}__lt": self.until})
        return iter(rows.filter(within).order_by("pk").iterator(_CHUNK))


def read_audit(
    tenant: Tenant | None, period: AuditPeriod, limit: int | None = None
) -> Iterator[AuditEntry]:
    """The entries of a tenant, or of all tenants, oldest first.

    Users, groups and logins belong to the installation, which the tenant `default` manages."""
    sources = [_of_journal(tenant, period)]
    if tenant is None or tenant.name == DEFAULT_TENANT:
        sources += [_of_admin_log(period)]
    return islice(heapq.merge(*sources, key=lambda entry: entry.at), limit)


def _of_journal(tenant: Tenant | None, period: AuditPeriod) -> Iterator[AuditEntry]:
    events = RunEvent.objects.filter(name__in=AUDITED).select_related("tenant", "agent")
    for event in period.of(events if tenant is None else events.filter(tenant=tenant), "at"):
        found = AUDITED[event.name].match(event.detail)
        if found is None and event.name == _STOP:
            continue  # by a limit, not by a person or a program
        who = found[1] if found else ""
        yield AuditEntry(
            *(event.at, f"event-{event.pk}", event.tenant.name),
            *(f"run {event.run_id}" if who == _ITSELF else who, event.name),
            *(event.agent.name if event.agent else None, event.run_id, event.detail),
        )


def _of_admin_log(period: AuditPeriod) -> Iterator[AuditEntry]:
    """Changes of users, groups and periodic tasks by forms of the admin."""
    # Workers have no admin.
    model: type[Model] = apps.get_model("admin", "LogEntry")
    rows = model._default_manager.filter(content_type__app_label__in=_LOGGED_APPS)
    for row in period.of(rows.select_related("user", "content_type"), "action_time"):
        what = f"{row.content_type.model}.{_VERBS.get(row.action_flag, 'changed')}"
        detail = ": ".join(filter(None, [row.object_repr, row.get_change_message()]))
        yield AuditEntry(
            *(row.action_time, f"admin-{row.pk}", DEFAULT_TENANT, row.user.get_username(), what),
            *(None, None, detail),
        )
