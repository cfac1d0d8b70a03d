"""Projects of other systems as people have them, and what Drover reads of them."""

import shutil
from collections.abc import Mapping
from pathlib import Path

from agents_app.formats import ProjectDiscovery, ReportLine, read_project
from agents_app.skills import AgentSpec

PROJECTS = Path(__file__).parent / "projects"
NO_VARIABLES: dict[str, str] = {}


def read(name: str, **env: str) -> ProjectDiscovery:
    """A project of this directory, where it lies and as it is."""
    return read_project(PROJECTS / name, server=env)


def copied(name: str, to: Path) -> Path:
    return Path(shutil.copytree(PROJECTS / name, to / name))


def write(root: Path, files: Mapping[str, str | bytes]) -> Path:
    for name, text in files.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(text.encode() if isinstance(text, str) else text)
    return root


def agent_of(found: ProjectDiscovery, name: str) -> AgentSpec:
    (agent,) = (one for one in found.agents if one.name == name)
    return agent


def errors_of(found: ProjectDiscovery) -> list[str]:
    return [str(error) for error in found.errors]


def report_at(found: ProjectDiscovery, file: str, field: str) -> ReportLine:
    (line,) = (one for one in found.report if (one.file, one.field) == (file, field))
    return line
