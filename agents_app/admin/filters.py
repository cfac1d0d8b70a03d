"""Filters that several lists and pages have: by tenant, by agent and by project directory."""

from typing import Any

from django.contrib import admin
from django.db.models import QuerySet
from django.http import HttpRequest

from agents_app.models import DEFAULT_TENANT, Agent, Tenant
from agents_app.reports import in_project

# A thousand agents would add half a megabyte to each page.
MOST_AGENTS = 50


class AgentFilter(admin.RelatedFieldListFilter):
    """A link for each agent of a small fleet; in a large fleet use the search field."""

    def field_choices(self, _field: Any, _request: HttpRequest, _model_admin: Any) -> Any:
        agents = Agent.objects.order_by("name", "tenant__name")
        few = list(agents.values_list("pk", "name", "tenant__name")[: MOST_AGENTS + 1])
        if len(few) > MOST_AGENTS:
            # A filter set by a link of another page is shown, so that it can be removed.
            chosen = [key for key in self.lookup_val or [] if str(key).isdecimal()]
            few = list(agents.filter(pk__in=chosen).values_list("pk", "name", "tenant__name"))
        return [(key, _label(name, tenant)) for key, name, tenant in few]

    def has_output(self) -> bool:
        return len(self.lookup_choices) > 1 or bool(self.lookup_val)


def _label(name: str, tenant: str) -> str:
    return name if tenant == DEFAULT_TENANT else f"{name} ({tenant})"


AGENT = ("agent", AgentFilter)


class TenantFilter(admin.RelatedFieldListFilter):
    """Shown where there is more than one tenant."""

    def field_choices(self, _field: Any, _request: HttpRequest, _model_admin: Any) -> Any:
        return list(Tenant.objects.order_by("name").values_list("pk", "name"))

    def has_output(self) -> bool:
        return len(self.lookup_choices) > 1 or bool(self.lookup_val)


def tenant_choices() -> list[tuple[int, str]]:
    """The key and name of each tenant for the filter of a page; empty if there is only one."""
    found = list(Tenant.objects.order_by("name").values_list("pk", "name"))
    return found if len(found) > 1 else []


def number_in(request: HttpRequest, name: str, most: int = 2**53) -> int:
    """The number that the query of the address has under the name; 0 if there is none."""
    text = request.GET.get(name, "")
    return min(int(text), most) if text.isascii() and text.isdigit() and len(text) < 16 else 0


class ProjectFilter(admin.SimpleListFilter):
    """Without a choice, rows of agents of earlier project directories are left out."""

    title = "project"
    parameter_name = "project"
    # The field that names the agent of a row; empty in the list of agents.
    agent_field = ""

    def lookups(self, _request: HttpRequest, _model_admin: Any) -> list[tuple[str, str]]:
        return [("all", "all projects")]

    def choices(self, changelist: Any) -> Any:
        default, *others = super().choices(changelist)
        return [{**default, "display": "this project"}, *others]

    def queryset(self, _request: HttpRequest, queryset: QuerySet[Any]) -> QuerySet[Any]:
        return queryset if self.value() == "all" else in_project(queryset, self.agent_field)
