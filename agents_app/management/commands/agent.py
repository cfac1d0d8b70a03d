"""Adds agents to the project from templates."""

from pathlib import Path
from typing import Any

from django.core.management.base import CommandParser

from agents_app.cli import DroverCommand
from agents_app.conf import CONF, PROGRAM
from agents_app.harness import HARNESSES
from agents_app.scaffold import (
    TEMPLATES,
    NewAgent,
    add_agent,
    default_template,
    steps_after_start,
    steps_before_start,
    template_named,
)


class Command(DroverCommand):
    help = "Add an agent to the project from a template, or list the templates."
    examples = (
        ("agent add cleaner", "A shell script that runs every minute."),
        ("agent add reviewer --template pr-reviewer", "Reviews pull requests by webhook."),
        ("agent templates", "All templates."),
    )

    def add_arguments(self, parser: CommandParser) -> None:
        verbs = parser.add_subparsers(dest="verb", required=True, metavar="VERB")
        add = verbs.add_parser("add", help="Write agents/NAME/SKILL.md from a template.")
        add.add_argument("name", metavar="NAME", help="The name of the new agent.")
        add.add_argument("--template", metavar="T", help=f"One of: {', '.join(TEMPLATES)}.")
        add.add_argument("--harness", choices=sorted(HARNESSES), help="The tool of the agent.")
        add.add_argument("--schedule", metavar="WHEN", help='For example "every day at 02:30".')
        listing = verbs.add_parser("templates", help="List the templates.")
        for verb in (add, listing):
            verb.add_argument("--json", action="store_true", help="Print JSON.")

    def handle(self, *, verb: str, json: bool, **options: Any) -> None:
        if verb == "add":
            self._add(CONF.project, json=json, **options)
            return
        rows = [
            (one.name, one.description, one.schedule or "webhook") for one in TEMPLATES.values()
        ]
        if json:
            keys = ("name", "description", "schedule")
            self.screen.json([dict(zip(keys, row, strict=True)) for row in rows])
        else:
            self.screen.table(("template", "description", "starts"), rows)

    def _add(self, project: Path, *, name: str, json: bool, **options: Any) -> None:
        harness, template = options["harness"] or "", options["template"]
        agent = NewAgent(
            name=name,
            template=template_named(template) if template else default_template(harness),
            schedule=options["schedule"] or "",
            harness=harness,
        )
        written = add_agent(project, agent)
        if json:
            self.screen.json({"project": project, "agent": name, "written": written})
            return
        for path in written:
            self.screen.say(f"written  {project / path}")
        steps = (*steps_before_start(agent), *steps_after_start(agent))
        for step in (*steps, f"{PROGRAM} run {name} --wait"):
            self.screen.say(f"next: {step}")
