"""A project directory of a test, and what Drover makes of it."""

from datetime import datetime
from pathlib import Path

from agents_app.models import Agent, Schedule
from agents_app.project.sync import sync_project
from agents_app.skills.discover import Discovery
from tests.agents_app.fleet import NOON


class Project:
    def __init__(self, root: Path) -> None:
        self.root = root
        self.root.mkdir()

    def agent(self, name: str = "reporter", frontmatter: str = "", body: str = "Work.") -> Path:
        directory = self.root / "agents" / name
        directory.mkdir(parents=True, exist_ok=True)
        text = f"---\ndescription: fine\ncommand: 'true'\n{frontmatter}\n---\n{body}\n"
        (directory / "SKILL.md").write_text(text)
        return directory

    def break_agent(self, name: str = "reporter", frontmatter: str = "scale: many") -> None:
        self.agent(name, frontmatter)

    def config(self, text: str) -> None:
        (self.root / "config.toml").write_text(text)

    def sync(self, now: datetime = NOON) -> Discovery:
        return sync_project(self.root, now)


def the_agent(name: str = "reporter") -> Agent:
    return Agent.objects.get(name=name)


def the_schedule(name: str | None = None) -> Schedule:
    return Schedule.objects.get(**({"name": name} if name else {}))
