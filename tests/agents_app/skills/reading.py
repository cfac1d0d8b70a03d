"""Helpers that parse a text and return its errors."""

from pathlib import Path

from agents_app.skills.document import SourceText
from agents_app.skills.errors import SkillError
from agents_app.skills.parse import parse_project, parse_skill
from agents_app.skills.specs import AgentSpec, ProjectSpec

SKILL = "agents/reporter/SKILL.md"
CONFIG = "agents/reporter/config.toml"


def agent(
    frontmatter: str,
    *,
    config: str | None = None,
    project: ProjectSpec | None = None,
    body: str = "Do it.\n",
) -> AgentSpec:
    return skill(f"---\n{frontmatter}\n---\n{body}", config=config, project=project)


def skill(text: str, *, config: str | None = None, project: ProjectSpec | None = None) -> AgentSpec:
    extra = None if config is None else SourceText(config, Path(CONFIG))
    return parse_skill(
        SourceText(text, Path(SKILL)), name="reporter", project=project, config=extra
    )


def project(text: str) -> ProjectSpec:
    return parse_project(SourceText(text, Path("config.toml")))


def problems(parse, *args, **kwargs) -> list[str]:
    """All error messages, without the directory of the agent."""
    try:
        parse(*args, **kwargs)
    except SkillError as error:
        return [str(one).removeprefix("agents/reporter/") for one in error.each]
    return []


def problem(parse, *args, **kwargs) -> str:
    found = problems(parse, *args, **kwargs)
    assert len(found) == 1, found
    return found[0]
