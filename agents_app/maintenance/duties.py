"""The system duties by task name; each is a PeriodicTask row that the admin shows."""

from collections.abc import Callable, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from datetime import datetime

import structlog
from django.db import DatabaseError, connection

from agents_app.accounts import project_problem
from agents_app.conf import CONF
from agents_app.maintenance.reconcile import reconcile
from agents_app.maintenance.retention import remove_old_rows_and_free_space
from agents_app.maintenance.snapshots import take_snapshot
from agents_app.maintenance.tenant_turns import TenantTurns
from agents_app.maintenance.totals import count_totals
from agents_app.models import DEFAULT_TENANT, Tenant
from agents_app.notifications import notify
from agents_app.rules.engine import ActionExecutor, evaluate_rules
from agents_app.work_sources import serve_work_sources
from agents_app.worker import this_host, utc_now

log = structlog.get_logger("drover.beat")
RULES = ActionExecutor(CONF.project, utc_now)
POLL_WORK_SOURCES = "agents_app.tasks.poll_work_sources"


def _reconcile(now: datetime) -> None:
    reconcile(now, this_host())


def _evaluate_rules(now: datetime) -> None:
    """Evaluate the rules of the default tenant, and begin to evaluate those of the others."""
    others = Tenant.objects.filter(disabled_at__isnull=True).exclude(project="")
    for name in others.exclude(name=DEFAULT_TENANT).values_list("name", flat=True):
        _RULES_OF_TENANTS.submit(name, now)
    evaluate_rules(now, CONF.project, RULES.submit)


def _evaluate_rules_of_tenant(tenant_name: str, now: datetime) -> None:
    tenant = Tenant.objects.filter(name=tenant_name, disabled_at__isnull=True).first()
    if tenant is None or not (project := tenant.project_directory) or project_problem(tenant):
        return
    evaluate_rules(now, project, RULES.submit, tenant_name)


_RULES_OF_TENANTS = TenantTurns(_evaluate_rules_of_tenant)


DUTIES: Mapping[str, Callable[[datetime], object]] = {
    "agents_app.tasks.reconcile": _reconcile,
    "agents_app.tasks.notify": notify,
    "agents_app.tasks.take_snapshot": take_snapshot,
    "agents_app.tasks.retention": remove_old_rows_and_free_space,
    "agents_app.tasks.count_totals": count_totals,
    "agents_app.tasks.obey_rules": _evaluate_rules,
    POLL_WORK_SOURCES: serve_work_sources,
}


class DutyRunner:
    """Runs duties in threads, so that they never delay a tick; none overlaps itself."""

    def __init__(self) -> None:
        self.pool = ThreadPoolExecutor(max_workers=len(DUTIES), thread_name_prefix="duty")
        self.running: dict[str, Future[None]] = {}

    def submit(self, task: str) -> None:
        last = self.running.get(task)
        if last is None or last.done():
            self.running[task] = self.pool.submit(_perform, task)


def _perform(task: str) -> None:
    try:
        DUTIES[task](utc_now())
    except DatabaseError as error:
        log.warning("duty.database_unreachable", duty=task, error=str(error))
        connection.close()
    except Exception:
        log.exception("duty.failed", duty=task)
