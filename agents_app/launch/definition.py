"""The definition of an agent, cached in the worker by the revision of the agent's files."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any

from agents_app.harness import HARNESSES
from agents_app.launch.hook_context import Hooks, hooks_of
from agents_app.launch.sandbox import SandboxChoice, sandbox_choice
from agents_app.models import Agent
from agents_app.runners import Runtime


@dataclass(frozen=True, slots=True)
class Definition:
    name: str
    command: tuple[str, ...]
    directory: str
    instructions: str
    params: dict[str, Any]
    env: dict[str, str]
    runtime: Runtime
    credentials: tuple[str, ...] = ()
    harness: str = ""
    hooks: Hooks = field(default_factory=Hooks)
    budget: Mapping[str, Any] = field(default_factory=dict)
    shared_writable: bool = False
    schedules_from_output: bool = True
    messages_on_stdin: bool = False
    sandbox: SandboxChoice = field(default_factory=SandboxChoice)
    # The directory of the tenant; empty without one.
    project: str = ""

    @property
    def body_is_script(self) -> bool:
        return bool(self.harness) and HARNESSES[self.harness].body_is_script


@lru_cache(maxsize=4096)
def definition_of(agent_id: int, _revision: int) -> Definition:
    """Cached: every change of the agent's files raises the revision."""
    agent = Agent.objects.select_related("tenant").get(pk=agent_id)
    return Definition(
        name=agent.name,
        command=tuple(agent.command),
        directory=agent.directory,
        instructions=agent.instructions,
        params=agent.params,
        env={name: str(value) for name, value in agent.env.items()},
        runtime=_runtime(agent.runtime),
        credentials=tuple(agent.credentials),
        harness=agent.harness,
        hooks=hooks_of(agent.hooks),
        budget=agent.budget,
        shared_writable=bool(agent.runtime.get("shared_writable")),
        schedules_from_output=agent.schedules_from_output,
        messages_on_stdin=agent.messages_on_stdin,
        sandbox=sandbox_choice(agent.runtime.get("sandbox", {})),
        project=str(agent.tenant.project_directory or ""),
    )


def _runtime(columns: Mapping[str, Any]) -> Runtime:
    known = Runtime.__dataclass_fields__.keys()
    return Runtime(**{name: value for name, value in columns.items() if name in known})
