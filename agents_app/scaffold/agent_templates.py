"""Templates of agents: their files with placeholders, filled in for one agent."""

import json
import tomllib
from collections.abc import Iterable
from dataclasses import dataclass
from importlib.resources import files
from pathlib import Path

from agents_app.conf import PROGRAM
from agents_app.errors import Refused, TriggerParseError
from agents_app.harness import HARNESSES
from agents_app.names import agent_name_problem, closest
from agents_app.scaffold.new_files import write_new
from agents_app.triggers import parse_trigger

SKILL, CONFIG = "SKILL.md", "config.toml"
SHELL = "shell"
KEYS = {"claude-code": "anthropic_key", "codex": "openai_key"}


@dataclass(frozen=True, slots=True)
class PromptLimits:
    """What a prompt may use: tools and dollars of Claude Code, tokens of Codex."""

    claude_tools: str
    usd_per_run: int
    usd_per_day: int
    million_tokens_per_day: int

    def lines(self, harness: str) -> str:
        """The fields of SKILL.md. Codex reports no cost, so caps in dollars would never apply."""
        if harness == "codex":
            return (
                "# After this number of tokens no run starts until midnight.\n"
                f"budget: {{tokens_per_day: {self.million_tokens_per_day}000000}}"
            )
        return (
            "harness_args:\n"
            "  # Claude Code refuses all other tools, because no person can be asked.\n"
            "  - --permission-mode=dontAsk\n"
            f"  - --allowedTools={self.claude_tools}\n"
            "  # A run that costs more ends as failed.\n"
            f"  - --max-budget-usd={self.usd_per_run}\n"
            "# After this sum no run starts until midnight.\n"
            f"budget: {{usd_per_day: {self.usd_per_day}}}"
        )


@dataclass(frozen=True, slots=True)
class Template:
    """A directory of `templates/`; `schedule` is the default, and empty for webhooks."""

    name: str
    description: str
    schedule: str
    harness: str = "claude-code"
    # The webhook source that the agent subscribes to; its table is added to config.toml.
    source: str = ""
    limits: PromptLimits | None = None


_READ = "Read,Grep,Glob,"
# Builds and tests are arbitrary commands.
_CHANGE = "Read,Grep,Glob,Edit,Write,Bash"
TEMPLATES = {
    template.name: template
    for template in (
        Template("script", "A shell script on a schedule, like a crontab line", "every 1m", SHELL),
        Template(
            "nightly-report",
            "A report about the last day",
            "every day at 02:30",
            limits=PromptLimits(f"{_READ}Bash(git log *),Bash(git show *),Bash(drover *)", 2, 5, 2),
        ),
        Template(
            "pr-reviewer",
            "Reviews pull requests of GitHub by webhook",
            "",
            source="github",
            limits=PromptLimits(f"{_READ}Bash(git *),Bash(gh *),Bash(drover *)", 2, 20, 8),
        ),
        Template(
            "dependency-updater",
            "Updates dependencies weekly",
            "every monday at 06:00",
            limits=PromptLimits(f"{_CHANGE},WebFetch", 5, 10, 4),
        ),
        Template(
            "issue-worker",
            "Works through the labelled issues of GitHub",
            "every 10m",
            limits=PromptLimits(_CHANGE, 5, 25, 10),
        ),
    )
}


@dataclass(frozen=True, slots=True, kw_only=True)
class NewAgent:
    """What to write; an empty schedule or harness means that of the template."""

    name: str
    template: Template
    schedule: str = ""
    harness: str = ""

    @property
    def used_harness(self) -> str:
        return self.harness or self.template.harness

    @property
    def used_schedule(self) -> str:
        return self.schedule or self.template.schedule


def template_named(name: str) -> Template:
    if found := TEMPLATES.get(name):
        return found
    close = closest(name, TEMPLATES)
    known = f"did you mean {close!r}?" if close else f"use one of {', '.join(TEMPLATES)}"
    raise Refused(f"there is no template {name!r}: {known}")


def default_template(harness: str) -> Template:
    """The template of a new agent with this harness; a script without one."""
    return TEMPLATES["script" if harness in ("", SHELL) else "nightly-report"]


def check_agent(agent: NewAgent) -> None:
    """Raises Refused if the agent could not be discovered."""
    if problem := agent_name_problem(agent.name):
        raise Refused(problem)
    if agent.used_harness not in HARNESSES:
        raise Refused(
            f"there is no harness {agent.used_harness!r}: use one of {', '.join(HARNESSES)}"
        )
    if (agent.used_harness == SHELL) != (agent.template.harness == SHELL):
        kind = "a script" if agent.template.harness == SHELL else "a prompt"
        raise Refused(
            f"the template {agent.template.name} is {kind}, which the harness "
            f"{agent.used_harness} cannot run: use the template "
            f"{default_template(agent.used_harness).name}, or another harness"
        )
    if agent.schedule and not agent.template.schedule:
        raise Refused(
            f"the template {agent.template.name} starts by webhook: leave the schedule out"
        )
    if agent.schedule:
        _check_schedule(agent.schedule)


def agent_texts(agent: NewAgent) -> dict[str, str]:
    """The files of the agent by path in the project. The agent must have passed `check_agent`."""
    text, limits = _template_file(agent.template, SKILL), agent.template.limits
    values = {
        "@SCHEDULE@": json.dumps(agent.used_schedule, ensure_ascii=False),
        "@HARNESS@": agent.used_harness,
        "@LIMITS@": limits.lines(agent.used_harness) if limits else "",
        "@KEY@": KEYS.get(agent.used_harness, "anthropic_key"),
        "@PROGRAM@": PROGRAM,
        "@NAME@": agent.name,
    }
    for placeholder, value in values.items():
        text = text.replace(placeholder, value)
    return {f"agents/{agent.name}/{SKILL}": text}


def source_table(template: Template) -> str:
    """The lines for the project's config.toml that declare the webhook source."""
    return _template_file(template, CONFIG) if template.source else ""


def add_agent(project: Path, agent: NewAgent) -> list[str]:
    """Write the agent into the project; returns the paths that were written or extended."""
    check_agent(agent)
    if not (project / "agents").is_dir() and not (project / CONFIG).is_file():
        raise Refused(
            f"{project} is not a project: it has neither {CONFIG} nor agents/. "
            f"Create one with `{PROGRAM} init`."
        )
    if (project / "agents" / agent.name).exists():
        raise Refused(
            f"the agent {agent.name} exists: {project / 'agents' / agent.name}. "
            "Choose another name; nothing was written."
        )
    config = _extended_config(project / CONFIG, agent.template)
    written = write_new(project, agent_texts(agent))
    if config:
        (project / CONFIG).write_text(config, encoding="utf-8")
        written.append(CONFIG)
    return written


def steps_before_start(agent: NewAgent) -> Iterable[str]:
    """What the user must do before Drover starts, a line each."""
    if agent.template.source:
        yield "set GITHUB_WEBHOOK_SECRET in the environment of Drover"


def steps_after_start(agent: NewAgent) -> Iterable[str]:
    """What the user must do before the first run, a line each; the database must exist."""
    if agent.used_harness in KEYS:
        yield f"{PROGRAM} credential set {KEYS[agent.used_harness]}"
    if agent.template.name in {"issue-worker", "pr-reviewer", "dependency-updater"}:
        yield f"{PROGRAM} credential set github_token"


def _extended_config(path: Path, template: Template) -> str:
    """The new text of config.toml; empty if the file need not change."""
    if not template.source:
        return ""
    before = path.read_text(encoding="utf-8") if path.exists() else ""
    try:
        sources = tomllib.loads(before).get("webhooks", {})
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise Refused(f"{path}: {error}. Fix the file first; nothing was written.") from None
    if template.source in sources:
        return ""
    return before + ("\n" if before else "") + source_table(template)


def _check_schedule(text: str) -> None:
    try:
        parse_trigger(text)
    except TriggerParseError as error:
        raise Refused(
            f"schedule {text!r}: {error}. Write for example: every day at 02:30"
        ) from None


def _template_file(template: Template, name: str) -> str:
    folder = files("agents_app.scaffold") / "templates" / template.name
    return (folder / name).read_text(encoding="utf-8")
