"""A filter by agent whose size does not grow with the fleet."""

from typing import Any

from django.contrib import admin
from django.http import HttpRequest

from agents_app.models import Agent

# A thousand agents would add half a megabyte to each page.
MOST_AGENTS = 50


class AgentFilter(admin.RelatedFieldListFilter):
    """A link for each agent of a small fleet; in a large fleet use the search field."""

    def field_choices(self, _field: Any, _request: HttpRequest, _model_admin: Any) -> Any:
        agents = Agent.objects.order_by("name")
        few = list(agents.values_list("pk", "name")[: MOST_AGENTS + 1])
        if len(few) <= MOST_AGENTS:
            return few
        # A filter set by a link of another page is shown, so that it can be removed.
        chosen = [key for key in self.lookup_val or [] if str(key).isdecimal()]
        return list(agents.filter(pk__in=chosen).values_list("pk", "name"))

    def has_output(self) -> bool:
        return len(self.lookup_choices) > 1 or bool(self.lookup_val)


AGENT = ("agent", AgentFilter)
