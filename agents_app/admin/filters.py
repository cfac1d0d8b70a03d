"""Filters of the lists that stay small however large the fleet is."""

from typing import Any

from django.contrib import admin
from django.http import HttpRequest

from agents_app.models import Agent

# More cannot be looked through, and would make each page of a large fleet half a megabyte longer.
MOST_AGENTS = 50


class AgentFilter(admin.RelatedFieldListFilter):
    """A link for each agent of a small fleet; in a large one people search by the agent's name."""

    def field_choices(self, _field: Any, _request: HttpRequest, _model_admin: Any) -> Any:
        agents = Agent.objects.order_by("name")
        few = list(agents.values_list("pk", "name")[: MOST_AGENTS + 1])
        if len(few) <= MOST_AGENTS:
            return few
        # What was chosen, by a link from elsewhere, can be seen and taken back.
        chosen = [key for key in self.lookup_val or [] if str(key).isdecimal()]
        return list(agents.filter(pk__in=chosen).values_list("pk", "name"))

    def has_output(self) -> bool:
        return len(self.lookup_choices) > 1 or bool(self.lookup_val)


AGENT = ("agent", AgentFilter)
