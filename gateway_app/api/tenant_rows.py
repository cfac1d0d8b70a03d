"""All queries of the API: each is limited to the tenant of the caller.

An object of another tenant is reported exactly like one that does not exist.
"""

from typing import TypeVar

from django.db.models import Model, OuterRef, QuerySet, Subquery

from agents_app.errors import NotFound
from agents_app.models import (
    DEFAULT_TENANT,
    Agent,
    ApiToken,
    Delivery,
    Firing,
    ResourceLock,
    Run,
    RunEvent,
    RunOutput,
    Schedule,
    Scheduler,
    Tenant,
    WebhookSource,
    WorkItem,
)
from agents_app.names import agent_name_problem
from agents_app.runs import read_scheduler
from agents_app.signals import held_locks
from gateway_app.access import Caller
from gateway_app.api.fields import LARGEST_KEY, utc_now

M = TypeVar("M", bound=Model)


def runs_of(tenant: Tenant) -> QuerySet[Run]:
    return Run.objects.filter(tenant=tenant).select_related("agent", "worker")


def work_of(tenant: Tenant) -> QuerySet[WorkItem]:
    return WorkItem.objects.filter(tenant=tenant).select_related("agent")


def events_of(tenant: Tenant) -> QuerySet[RunEvent]:
    return RunEvent.objects.filter(tenant=tenant).select_related("agent")


def deliveries_of(tenant: Tenant) -> QuerySet[Delivery]:
    return Delivery.objects.filter(tenant=tenant).select_related("source")


def output_of(run: Run) -> QuerySet[RunOutput]:
    return RunOutput.objects.filter(tenant=run.tenant_id, run=run).order_by("seq")


def schedules_of(tenant: Tenant) -> QuerySet[Schedule]:
    """Each with `last_run_id` and `last_run_at`."""
    newest = Run.objects.filter(schedule=OuterRef("pk")).order_by("-pk")
    return tenant.schedules.select_related("agent").annotate(
        last_run_id=Subquery(newest.values("pk")[:1]),
        last_run_at=Subquery(newest.values("started_at")[:1]),
    )


def firings_of(tenant: Tenant) -> QuerySet[Firing]:
    """Each with the `work_item_id`, `run_id` and `run_state` of its work."""
    runs = Run.objects.filter(work_item__firing=OuterRef("pk")).order_by("-pk")
    work = WorkItem.objects.filter(firing=OuterRef("pk"))
    found = Firing.objects.filter(tenant=tenant).select_related("schedule__agent")
    return found.annotate(
        work_item_id=Subquery(work.values("pk")[:1]),
        run_id=Subquery(runs.values("pk")[:1]),
        run_state=Subquery(runs.values("state")[:1]),
    )


def locks_of(tenant: Tenant) -> QuerySet[ResourceLock]:
    """Locks in force, without expired ones."""
    return held_locks(tenant.pk, utc_now())


def tenants_of(caller: Caller) -> QuerySet[Tenant]:
    """All tenants for an operator; for another caller its own."""
    tenants = Tenant.objects.all()
    return tenants if caller.is_operator else tenants.filter(pk=caller.tenant.pk)


def the_scheduler() -> Scheduler:
    """The row of the scheduler, which serves all tenants."""
    return read_scheduler(utc_now())


# --- one object -----------------------------------------------------------------------------


def find_agent(tenant: Tenant, name: str) -> Agent:
    found = tenant.agents.filter(name=name).first() if _is_name(name) else None
    return _or_not_found(found, "agent")


def find_schedule(tenant: Tenant, key: int) -> Schedule:
    return _or_not_found(_by_key(schedules_of(tenant), key), "schedule")


def find_run(tenant: Tenant, key: int) -> Run:
    return _or_not_found(_by_key(runs_of(tenant).select_related("work_item"), key), "run")


def find_work(tenant: Tenant, key: int) -> WorkItem:
    return _or_not_found(_by_key(work_of(tenant), key), "work item")


def find_delivery(tenant: Tenant, key: int) -> Delivery:
    return _or_not_found(_by_key(deliveries_of(tenant), key), "delivery")


def find_source(tenant: Tenant, name: str) -> WebhookSource:
    found = tenant.webhook_sources.filter(name=name).first() if "\0" not in name else None
    return _or_not_found(found, "webhook source")


def find_lock(tenant: Tenant, key: int) -> ResourceLock:
    return _or_not_found(_by_key(locks_of(tenant), key), "lock")


def find_token(tenant: Tenant, key: int) -> ApiToken:
    return _or_not_found(_by_key(tenant.tokens.all(), key), "token")


def find_tenant(caller: Caller, name: str) -> Tenant:
    found = tenants_of(caller).filter(name=name).first() if _is_name(name) else None
    return _or_not_found(found, "tenant")


def _by_key(rows: "QuerySet[M]", key: int) -> M | None:
    return rows.filter(pk=key).first() if key <= LARGEST_KEY else None


def _or_not_found(found: M | None, noun: str) -> M:
    if found is None:
        raise NotFound(f"there is no such {noun}")
    return found


def _is_name(text: str) -> bool:
    return text == DEFAULT_TENANT or agent_name_problem(text) is None
