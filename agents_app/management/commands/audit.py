"""Prints the audit as JSON lines."""

import json
from typing import Any
from zoneinfo import ZoneInfo

from django.core.management.base import CommandParser

from agents_app.cli import DroverCommand, find_tenant
from agents_app.clock import HOST_ZONE
from agents_app.models import DEFAULT_TENANT
from agents_app.reports import AuditPeriod, read_audit
from agents_app.triggers import past_moment_of


class Command(DroverCommand):
    help = "Print who did what and when, one JSON object per line, oldest first."
    examples = (
        ("audit --since '7 days ago'", "Changes and logins of the last week."),
        ("audit --all-tenants", "Of every tenant, as long as events are kept."),
    )

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("--since", metavar="TIME", default="", help="Entries from this time.")
        parser.add_argument("--until", metavar="TIME", default="", help="Entries before this time.")
        tenants = parser.add_mutually_exclusive_group()
        tenants.add_argument(
            "--tenant", default=DEFAULT_TENANT, help="The tenant (default: default)."
        )
        tenants.add_argument("--all-tenants", action="store_true", help="Of every tenant.")

    def handle(self, *, tenant: str, all_tenants: bool, since: str, until: str, **_: Any) -> None:
        now, zone = self.now, ZoneInfo(HOST_ZONE)
        period = AuditPeriod(
            past_moment_of("--since", since, now, zone) if since else None,
            past_moment_of("--until", until, now, zone) if until else None,
        )
        for entry in read_audit(None if all_tenants else find_tenant(tenant), period):
            # ASCII: no terminal control of a name or a note is printed.
            self.stdout.write(json.dumps(entry.as_json()))
