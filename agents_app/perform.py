"""What happens between the start and the end of a run: a room, a prompt, the program, a verdict."""

import os
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

import structlog

from agents_app.conf import CONF, ROOT
from agents_app.environment import base_environment, run_environment
from agents_app.errors import DroverError, Refused
from agents_app.gateway_socket import socket_directory, socket_path
from agents_app.job import Ending, Job
from agents_app.models import Agent
from agents_app.prompt import build_prompt
from agents_app.room import make_room, remove_room, signal_directory
from agents_app.runners import RUNNERS
from agents_app.runners.base import Mount, Outcome, RunControl, RunSpec, Runtime, verdict
from agents_app.signal_files import take_signal_files
from agents_app.transcript import Transcript
from agents_app.writ_watch import WritWatch

log = structlog.get_logger("drover.perform")
AGENT_BIN = ROOT / "agents_app" / "agent_bin"


@dataclass(frozen=True, slots=True)
class Definition:
    """What a worker keeps of an agent between its runs."""

    name: str
    command: tuple[str, ...]
    directory: str
    instructions: str
    params: dict[str, Any]
    env: dict[str, str]
    runtime: Runtime
    schedules_from_output: bool


def perform(job: Job, control: RunControl, transcript: Transcript) -> Ending:
    """Whatever goes wrong, the run ends and its slot is free again."""
    try:
        definition = definition_of(job.agent_id, job.revision)
        outcome = _run_program(job, definition, control, transcript)
        said = take_signal_files(signal_directory(job.run_id))
    except DroverError as error:
        return Ending("failed", error=str(error))
    except Exception as error:
        log.exception("run.not_performed", run_id=job.run_id)
        return Ending("failed", error=f"not_performed: {type(error).__name__}: {error}")
    finally:
        remove_room(job.run_id)
        transcript.close()
    return _ending(outcome, transcript, said)


def _run_program(
    job: Job, definition: Definition, control: RunControl, transcript: Transcript
) -> Outcome:
    spec = _prepare(job, definition)
    runner = RUNNERS[definition.runtime.type]
    if not definition.schedules_from_output:
        return runner.run(spec, control, transcript)
    writs = WritWatch(transcript, job.agent_id, job.run_id)
    try:
        return runner.run(spec, control, writs)
    finally:
        writs.finish()


def _ending(
    outcome: Outcome, transcript: Transcript, said: Mapping[str, str] | None = None
) -> Ending:
    judged = verdict(outcome)
    return Ending(
        state=judged.state,
        error=judged.error,
        exit_code=outcome.exit_code,
        pid=outcome.pid,
        wants_rerun=judged.wants_rerun,
        output_bytes=transcript.total_bytes,
        output_cut_bytes=transcript.buffer.left_out_bytes,
        said=said,
    )


def _prepare(job: Job, definition: Definition) -> RunSpec:
    """A private directory with the prompt in it, and the environment."""
    prompt = build_prompt(
        definition.instructions, definition.params, job.trigger, job.prompt, job.context
    )
    room, prompt_file = make_room(job.run_id, prompt)
    state_dir = _state_dir(job.agent_id)
    return RunSpec(
        run_id=job.run_id,
        argv=_resolve(definition),
        env=_environment(job, definition, prompt, prompt_file, state_dir),
        cwd=room,
        prompt_file=prompt_file,
        timeout_seconds=job.timeout_seconds,
        grace_seconds=CONF.grace_seconds,
        trace_id=job.trace_id,
        runtime=definition.runtime,
        mounts=_mounts(definition, room, state_dir),
    )


def _environment(
    job: Job, definition: Definition, prompt: str, prompt_file: Path, state_dir: Path
) -> dict[str, str]:
    return run_environment(
        _server_environment(),
        definition.env,
        run_id=job.run_id,
        agent=definition.name,
        agent_dir=definition.directory,
        state_dir=state_dir,
        trigger=job.trigger,
        schedule_id=job.schedule_id,
        attempt=job.attempt,
        timeout_seconds=job.timeout_seconds,
        prompt=prompt,
        prompt_file=prompt_file,
        trace_id=job.trace_id,
        gateway_url=CONF.gateway_url,
        gateway_socket=socket_path(CONF.data),
        signal_dir=signal_directory(job.run_id),
        token=job.token,
    )


def _resolve(definition: Definition) -> tuple[str, ...]:
    """A program named `./x` is a file of the agent, wherever the run's own directory is."""
    if not definition.command:
        raise Refused("no command: name the program to run in the agent's `command`")
    program, *arguments = definition.command
    if program.startswith("./"):
        program = os.path.join(definition.directory, program[2:])  # noqa: PTH118
    return program, *arguments


def _mounts(definition: Definition, room: Path, state_dir: Path) -> tuple[Mount, ...]:
    """What a run that sees no other files must see, each at the path that it has outside."""
    return (
        Mount(room, writable=True),
        Mount(state_dir, writable=True),
        Mount(Path(definition.directory)),
        Mount(AGENT_BIN),
        Mount(_gateway_directory()),
    )


@lru_cache(maxsize=1)
def _server_environment() -> dict[str, str]:
    """The commands an agent has come first on its PATH."""
    base = base_environment(os.environ)
    return base | {"PATH": f"{AGENT_BIN}:{base['PATH']}"}


@lru_cache(maxsize=1)
def _gateway_directory() -> Path:
    """There before the first gateway is, which puts its socket into it."""
    return socket_directory(CONF.data)


@lru_cache(maxsize=4096)
def _state_dir(agent_id: int) -> Path:
    """Kept between the runs of an agent, unlike the room of a run."""
    path = CONF.data / "state" / str(agent_id)
    path.mkdir(mode=0o700, parents=True, exist_ok=True)
    return path


@lru_cache(maxsize=4096)
def definition_of(agent_id: int, _revision: int) -> Definition:
    """Cached by revision, which every change of the agent's files raises."""
    agent = Agent.objects.get(pk=agent_id)
    return Definition(
        name=agent.name,
        command=tuple(agent.command),
        directory=agent.directory,
        instructions=agent.instructions,
        params=agent.params,
        env={name: str(value) for name, value in agent.env.items()},
        runtime=_runtime(agent.runtime),
        schedules_from_output=agent.schedules_from_output,
    )


def _runtime(columns: Mapping[str, Any]) -> Runtime:
    known = Runtime.__dataclass_fields__.keys()
    return Runtime(**{name: value for name, value in columns.items() if name in known})
