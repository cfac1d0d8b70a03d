"""Shows the call tree of a run."""

from dataclasses import asdict
from typing import Any

from django.core.management.base import CommandParser

from agents_app.cli import DroverCommand, find_run, find_tenant
from agents_app.signals import Branch, call_tree


class Command(DroverCommand):
    help = "Show the call tree of a run."
    examples = (("calls 42", "The call tree that contains run 42."),)

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("run", metavar="RUN", help="Number of any run in the tree.")
        super().add_arguments(parser)

    def handle(self, *, run: str, tenant: str, json: bool, **_: Any) -> None:
        tree = call_tree(find_run(find_tenant(tenant), run))
        self.result("\n".join(lines(tree)), asdict(tree), json=json)


def lines(branch: Branch, depth: int = 0) -> list[str]:
    run = f"run {branch.run_id}, {branch.state}" if branch.run_id else branch.state
    call = f" (call {branch.call_id}: {branch.status})" if branch.call_id else ""
    error = f": {branch.error}" if branch.error else ""
    own = f"{'  ' * depth}{branch.agent}, {run}{call}{error}"
    return [own, *(line for each in branch.calls for line in lines(each, depth + 1))]
