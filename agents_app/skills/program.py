"""Which program an agent is: its own command, or what its harness stands for."""

from dataclasses import replace

from agents_app.harness import HARNESSES
from agents_app.skills.specs import AgentSpec, ProjectSpec
from agents_app.skills.tables import Layer


def with_program(spec: AgentSpec, project: ProjectSpec, layer: Layer) -> AgentSpec:
    """What the agent says goes before what the project says, and a command before a harness."""
    harness = spec.harness or project.harness
    command = spec.command
    if not command and not spec.harness:
        command = project.command
    if not command and harness:
        command = HARNESSES[harness].argv(spec.model, spec.harness_args)
        _check_model(spec, harness, layer)
        _check_messages(spec, harness, layer)
    else:
        _refuse_idle_fields(spec, layer)
    return replace(spec, harness=harness, command=command)


def _check_messages(spec: AgentSpec, harness: str, layer: Layer) -> None:
    if spec.messages == "stdin" and not HARNESSES[harness].body_is_script:
        problem = f"the harness {harness!r} reads its prompt there: leave it at inbox"
        layer.complain(("messages",), problem)


def _check_model(spec: AgentSpec, harness: str, layer: Layer) -> None:
    if spec.model and not HARNESSES[harness].takes_model:
        layer.complain(("model",), f"the harness {harness!r} has no model; leave it out")


def _refuse_idle_fields(spec: AgentSpec, layer: Layer) -> None:
    """They are part of a harness's command, and another one is used."""
    for name, given in (("model", spec.model), ("harness_args", spec.harness_args)):
        if given:
            what = "put it into `command`" if spec.command else "say which `harness`"
            layer.complain((name,), f"belongs to the command of a harness; {what}")
