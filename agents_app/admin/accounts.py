"""Pages of tenants, users, groups and failed logins; pausing a tenant pauses all its agents."""

from typing import Any

from django.contrib import admin
from django.contrib.auth.admin import GroupAdmin as DjangoGroupAdmin
from django.contrib.auth.admin import UserAdmin as DjangoUserAdmin
from django.contrib.auth.models import Group, User
from django.db.models import Count, QuerySet
from django.http import HttpRequest
from django.utils.safestring import SafeString
from unfold.forms import AdminPasswordChangeForm, UserChangeForm, UserCreationForm

from agents_app.admin.base import Act, NamedPages, RecordAdmin, Verb
from agents_app.admin.formatting import badge
from agents_app.errors import Refused
from agents_app.models import LoginFailure, Tenant
from agents_app.runs import control

admin.site.unregister(User)
admin.site.unregister(Group)


def _pause(tenant: Tenant, act: Act) -> str:
    if not control.pause_tenant(tenant, act.by, act.now, act.note):
        raise Refused("already paused")
    return f"All agents of {tenant} paused: schedules are skipped, other work is queued"


def _resume(tenant: Tenant, act: Act) -> str:
    if not control.resume_tenant(tenant, act.by, act.now):
        raise Refused("not paused")
    return f"All agents of {tenant} resumed"


PAUSE = Verb(
    "pause", "Pause all", "pause", _pause, lambda t: not t.paused_at, asks="Reason (optional)"
)
RESUME = Verb("resume", "Resume all", "resume", _resume, lambda t: t.paused_at is not None)


def state_of(tenant: Tenant) -> str:
    if tenant.disabled_at:
        return "disabled"
    return "paused" if tenant.paused_at else "enabled"


@admin.register(Tenant)
class TenantAdmin(RecordAdmin):
    verbs = (PAUSE, RESUME)
    list_display = ["name", "state", "agent_count", "scale", "directory", "created_at"]
    search_fields = ["name"]
    ordering = ["name"]
    readonly_fields = ["directory", "settings", "definition_errors"]
    fields = [
        *("name", "directory", "scale", "paused_at", "pause_note", "disabled_at", "created_at"),
        *("settings", "definition_errors"),
    ]

    def get_queryset(self, request: HttpRequest) -> QuerySet[Tenant]:
        tenants: QuerySet[Tenant] = super().get_queryset(request).annotate(n=Count("agents"))
        return tenants

    def state(self, tenant: Tenant) -> SafeString:
        return badge(state_of(tenant), tenant.pause_note)

    @admin.display(description="Project", ordering="project")
    def directory(self, tenant: Tenant) -> str:
        return str(tenant.project_directory or "-")

    @admin.display(description="Agents", ordering="n")
    def agent_count(self, tenant: Any) -> int:
        return int(tenant.n)


@admin.register(User)
class UserAdmin(DjangoUserAdmin, NamedPages):  # type: ignore[type-arg]
    form = UserChangeForm
    add_form = UserCreationForm
    change_password_form = AdminPasswordChangeForm


@admin.register(Group)
class GroupAdmin(DjangoGroupAdmin, NamedPages):
    pass


@admin.register(LoginFailure)
class LoginFailureAdmin(RecordAdmin):
    list_display = ["user_name", "address", "at"]
    search_fields = ["user_name", "address"]
    ordering = ["-id"]
