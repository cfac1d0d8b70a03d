"""The admin: what people see and do; every act goes through the same verbs as the commands."""

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
