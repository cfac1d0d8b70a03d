"""The admin: pages and the actions on them.

Belongs here: lists, pages, forms and small charts.
Does not belong here: decisions; every action calls the function that the commands call.
"""

from django.contrib import admin

from agents_app.admin import (
    agents,
    credentials,
    deliveries,
    duties,
    firings,
    journal,
    machines,
    outside,
    people,
    queue,
    rules,
    runs,
    schedules,
    spending,
    talk,
    tenants,
    webhooks,
)

admin.site.index_template = "drover/overview.html"

__all__ = [
    "agents",
    "credentials",
    "deliveries",
    "duties",
    "firings",
    "journal",
    "machines",
    "outside",
    "people",
    "queue",
    "rules",
    "runs",
    "schedules",
    "spending",
    "talk",
    "tenants",
    "webhooks",
]
