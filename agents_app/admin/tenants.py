"""Tenants: who owns what; pausing one pauses its whole fleet."""

from typing import Any

from django.contrib import admin
from django.db.models import Count, QuerySet
from django.http import HttpRequest
from django.utils.safestring import SafeString

from agents_app.admin.base import Act, RecordAdmin, Verb
from agents_app.admin.show import badge
from agents_app.errors import Refused
from agents_app.models import Tenant
from agents_app.runs import control


def _pause(tenant: Tenant, act: Act) -> str:
    if not control.pause_tenant(tenant, act.by, act.now, act.note):
        raise Refused("it is paused already")
    return f"all agents of {tenant} are paused: schedules are skipped, everything else waits"


def _resume(tenant: Tenant, act: Act) -> str:
    if not control.resume_tenant(tenant, act.by, act.now):
        raise Refused("it is not paused")
    return f"the agents of {tenant} go on"


PAUSE = Verb(
    "pause", "Pause all", "pause", _pause, lambda t: not t.paused_at, asks="Why (optional)"
)
RESUME = Verb("resume", "Resume all", "resume", _resume, lambda t: t.paused_at is not None)


def state_of(tenant: Tenant) -> str:
    if tenant.disabled_at:
        return "disabled"
    return "paused" if tenant.paused_at else "enabled"


@admin.register(Tenant)
class TenantAdmin(RecordAdmin):
    verbs = (PAUSE, RESUME)
    list_display = ["name", "state", "agent_count", "scale", "created_at"]
    search_fields = ["name"]
    ordering = ["name"]
    readonly_fields = ["settings", "definition_errors"]
    fields = [
        *("name", "scale", "paused_at", "pause_note", "disabled_at", "created_at"),
        *("settings", "definition_errors"),
    ]

    def get_queryset(self, request: HttpRequest) -> QuerySet[Tenant]:
        tenants: QuerySet[Tenant] = super().get_queryset(request).annotate(n=Count("agents"))
        return tenants

    def state(self, tenant: Tenant) -> SafeString:
        return badge(state_of(tenant), tenant.pause_note)

    @admin.display(description="Agents", ordering="n")
    def agent_count(self, tenant: Any) -> int:
        return int(tenant.n)
