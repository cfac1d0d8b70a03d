"""Creates a project with its first agent."""

import sys
from pathlib import Path
from typing import Any

from django.core.management.base import CommandParser

from agents_app.cli import DroverCommand, ask
from agents_app.conf import PROGRAM
from agents_app.harness import HARNESSES
from agents_app.scaffold import (
    TEMPLATES,
    NewAgent,
    create_project,
    default_template,
    refuse_occupied,
    steps_after_start,
    steps_before_start,
    template_named,
)


class Command(DroverCommand):
    help = "Create a project: config.toml, scheduler.rules, .gitignore and a first agent."
    examples = (
        ("init my-fleet", "Ask for harness, agent and schedule, and write the project."),
        ("init my-fleet --yes", "Ask nothing: a script that runs every minute."),
        ("init . --existing --template pr-reviewer --yes", "In a directory with other files."),
    )

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument(
            "directory", metavar="DIR", nargs="?", default=".", help="Default: this directory."
        )
        parser.add_argument("--harness", choices=sorted(HARNESSES), help="The tool of the agent.")
        parser.add_argument("--agent", metavar="NAME", help="The name of the first agent.")
        parser.add_argument("--template", choices=sorted(TEMPLATES), help="What the agent does.")
        parser.add_argument("--schedule", metavar="WHEN", help='For example "every day at 02:30".')
        parser.add_argument("--existing", action="store_true", help="Allow a directory with files.")
        parser.add_argument("--yes", action="store_true", help="Ask nothing; use the defaults.")
        parser.add_argument("--json", action="store_true", help="Print JSON.")

    def handle(self, *, directory: str, existing: bool, json: bool, **options: Any) -> None:
        where = Path(directory).resolve()
        # Before the questions, so that no answer is in vain.
        refuse_occupied(where, existing=existing)
        asks = sys.stdin.isatty() and not options["yes"]
        made = create_project(where, _agent_of(options, asks=asks), existing=existing)
        if json:
            self.screen.json({"project": where, "agent": made.agent.name, "written": made.written})
            return
        self.screen.say(f"project {where}")
        for path in made.written:
            self.screen.say(f"  written  {path}")
        if ".gitignore" not in made.written:
            self.screen.say("  kept     .gitignore (add .drover/ and .env to it)")
        self.screen.say("next:")
        later = tuple(steps_after_start(made.agent))
        # Further commands need a shell: then Drover starts in the background.
        start = _start(where, "up -d" if later else "up")
        for step in (*steps_before_start(made.agent), start, *later):
            self.screen.say(f"  {step}")


def _start(where: Path, command: str) -> str:
    start = f"{PROGRAM} {command}"
    if PROGRAM != "drover":
        return f"DROVER_PROJECT={where} {start}"
    return start if where == Path.cwd() else f"cd {where} && {start}"


def _agent_of(options: dict[str, Any], *, asks: bool) -> NewAgent:
    """The agent of the options; questions for the options that are missing, if `asks`."""
    harness, template = options["harness"] or "", options["template"]
    if asks and not harness and not template:
        harness = ask("Harness", "shell", tuple(HARNESSES))
    found = template_named(template) if template else default_template(harness)
    if asks and not template and found.harness != "shell":
        fitting = tuple(name for name, one in TEMPLATES.items() if one.harness != "shell")
        found = template_named(ask("What should the first agent do?", found.name, fitting))
    name, schedule = options["agent"], options["schedule"]
    if asks and not name:
        name = ask("Name of the agent", _default_name(found.name))
    if asks and not schedule and found.schedule:
        schedule = ask("Schedule", found.schedule)
    return NewAgent(
        name=name or _default_name(found.name),
        template=found,
        schedule=schedule or "",
        harness=harness,
    )


def _default_name(template: str) -> str:
    return "hello" if template == "script" else template
