"""Shows the state of the fleet, once or repeatedly."""

from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime
from typing import Any

from django.core.management.base import CommandParser

from agents_app.cli import DroverCommand, find_agent, find_tenant
from agents_app.console import Fleet, Part, add_stat, fleet_parts, interval_of, watch_fleet
from agents_app.database import schema_problem
from agents_app.models import DEFAULT_TENANT
from agents_app.reports import read_fleet
from agents_app.runs import missing_processes, read_scheduler


class Command(DroverCommand):
    help = "Show the scheduler, every agent and the workers."
    examples = (
        ("stat", "State of the fleet."),
        ("stat -w --every 5", "Refresh every five seconds until Ctrl-C."),
        ("stat reporter --json", "One agent as JSON."),
    )

    def add_arguments(self, parser: CommandParser) -> None:
        add_stat(parser)
        super().add_arguments(parser)

    def handle(
        self, *, tenant: str, agents: list[str], watch: bool, every: str, json: bool, **options: Any
    ) -> None:
        # An agent that is named is shown, wherever its directory was.
        self.all_projects = options["all"] or bool(agents)
        if tenant != DEFAULT_TENANT or agents:
            owner = find_tenant(tenant)
            agents = [find_agent(owner, name).name for name in agents]
        if watch:
            seconds = interval_of(every)
            watch_fleet(self.screen, lambda: self._read(tenant, agents), _parts, seconds, json=json)
        elif json:
            self.screen.json(self._read(tenant, agents))
        else:
            self.screen.show(_parts(self._read(tenant, agents), self.now))

    def _read(self, tenant: str, agents: list[str]) -> Fleet:
        fleet = read_fleet(tenant, self.now, all_projects=self.all_projects)
        chosen = [agent for agent in fleet.agents if not agents or agent.name in agents]
        return replace(fleet, agents=chosen)


def _parts(fleet: Fleet, now: datetime) -> Sequence[Part]:
    missing = missing_processes(read_scheduler(now), now)
    return fleet_parts(fleet, now, missing=missing, schema_problem=schema_problem())
