"""The admin: pages and the actions on them.

Belongs here: lists, pages, forms and charts.
Does not belong here: decisions; each action calls the same function as the command line.
"""

from django.contrib import admin

from agents_app.admin import (
    accounts,
    agents,
    credentials,
    deliveries,
    firings,
    history,
    integrations,
    interaction,
    machines,
    periodic_tasks,
    queue,
    rules,
    runs,
    schedules,
    tokens,
    work_sources,
)

admin.site.index_template = "drover/overview.html"

__all__ = [
    "accounts",
    "agents",
    "credentials",
    "deliveries",
    "firings",
    "history",
    "integrations",
    "interaction",
    "machines",
    "periodic_tasks",
    "queue",
    "rules",
    "runs",
    "schedules",
    "tokens",
    "work_sources",
]
