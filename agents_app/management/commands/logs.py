"""Shows what a run printed, also while it runs."""

from typing import Any

from django.core.management.base import CommandParser

from agents_app.cli.asking import ending_of
from agents_app.cli.command import DroverCommand
from agents_app.cli.find import find_run_or_agent, find_tenant
from agents_app.cli.fleet import last_run
from agents_app.cli.follow import as_lines, output_until_end
from agents_app.errors import NotFound
from agents_app.models import Agent, Run, Tenant
from agents_app.printed import output_so_far


class Command(DroverCommand):
    help = "Show the output of a run, of an agent's newest run, or of the newest run of all."

    def add_arguments(self, parser: CommandParser) -> None:
        super().add_arguments(parser)
        parser.add_argument("target", metavar="RUN|AGENT", nargs="?", default="")
        parser.add_argument("-f", "--follow", action="store_true", help="Go on until the run ends.")
        parser.add_argument("--times", action="store_true", help="Put the time before each line.")

    def handle(
        self, *, tenant: str, target: str, follow: bool, times: bool, json: bool, **_: Any
    ) -> None:
        run = find_newest(find_tenant(tenant), target)
        pieces = output_until_end(run.pk) if follow else output_so_far(run.pk)
        if json and follow:
            for piece in pieces:
                self.screen.json_line(piece)
        elif json:
            described = {"agent": run.agent.name, "run": last_run(run), "output": list(pieces)}
            self.screen.json(described)
        else:
            for text in as_lines(pieces, times=times):
                self.screen.text(text)
            run.refresh_from_db()
            self.remark(ending_of(run))


def find_newest(tenant: Tenant, target: str) -> Run:
    """The run itself, or the newest of the agent or of all."""
    found = find_run_or_agent(tenant, target) if target else None
    if isinstance(found, Run):
        return found
    runs = Run.objects.filter(tenant=tenant).select_related("agent").order_by("-pk")
    newest = (runs.filter(agent=found) if isinstance(found, Agent) else runs).first()
    if newest is None:
        who = f"agent {found.name!r}" if isinstance(found, Agent) else "no agent"
        ran = "has not run yet" if found else "has run yet"
        raise NotFound(f"{who} {ran} (manage.py run AGENT runs one now)")
    return newest
