"""A new project: config.toml, scheduler.rules, .gitignore and the first agent."""

from dataclasses import dataclass
from importlib.resources import files
from pathlib import Path

from agents_app.conf import PROGRAM
from agents_app.errors import Refused
from agents_app.scaffold.agent_templates import NewAgent, agent_texts, check_agent, source_table
from agents_app.scaffold.new_files import write_new

CONFIG, RULES, IGNORED = "config.toml", "scheduler.rules", ".gitignore"
# Files of a project; `init` never writes into a directory that has one of them.
OF_A_PROJECT = (CONFIG, "agents", RULES)
# The names of files in the package: a file `.gitignore` there would be one of this repository.
SOURCES = {CONFIG: "config.toml", RULES: "scheduler.rules", IGNORED: "gitignore"}


@dataclass(frozen=True, slots=True)
class NewProject:
    directory: Path
    agent: NewAgent
    written: list[str]


def create_project(directory: Path, agent: NewAgent, *, existing: bool = False) -> NewProject:
    """Write a project with one agent; with `existing` beside other files of the directory."""
    check_agent(agent)
    refuse_occupied(directory, existing=existing)
    texts = {name: _text_of(source, agent) for name, source in SOURCES.items()}
    if table := source_table(agent.template):
        texts[CONFIG] += f"\n{table}"
    if (directory / IGNORED).exists():
        # The file of a repository; the caller shows that it was not written.
        del texts[IGNORED]
    return NewProject(directory, agent, write_new(directory, texts | agent_texts(agent)))


def refuse_occupied(directory: Path, *, existing: bool) -> None:
    """Raises Refused if the directory is a project, a file, or has other files."""
    if directory.exists() and not directory.is_dir():
        raise Refused(f"{directory} is not a directory: choose another path")
    try:
        found = sorted(entry.name for entry in directory.iterdir()) if directory.exists() else []
    except OSError as error:
        raise Refused(f"cannot read {directory}: {error.strerror}") from None
    if taken := [name for name in OF_A_PROJECT if name in found]:
        raise Refused(
            f"{directory} already is a project (it has {', '.join(taken)}): nothing was written. "
            f"Add an agent with `{PROGRAM} agent add NAME`."
        )
    visible = [name for name in found if not name.startswith(".")]
    if visible and not existing:
        shown = ", ".join(visible[:3]) + (" ..." if len(visible) > 3 else "")
        raise Refused(
            f"{directory} is not empty (it has {shown}): nothing was written. "
            "Choose a new directory, or add --existing to create the project beside these files."
        )


def _text_of(source: str, agent: NewAgent) -> str:
    text = (files("agents_app.scaffold") / "project" / source).read_text(encoding="utf-8")
    return text.replace("@PROGRAM@", PROGRAM).replace("@NAME@", agent.name)
