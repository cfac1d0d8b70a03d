"""A worker executes a run, and goes on with the agent's next one while its slot stays busy."""

import os
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from datetime import datetime
from functools import lru_cache
from pathlib import Path
from typing import Any

import structlog
from django.db import DatabaseError, InterfaceError, OperationalError, connection

from agents_app import dispatch, lifecycle, relay
from agents_app.commit import in_transaction
from agents_app.conf import CONF
from agents_app.environment import base_environment, run_environment
from agents_app.errors import DroverError, Refused
from agents_app.job import Ending, Job
from agents_app.models import Agent, Run
from agents_app.prompt import build_prompt
from agents_app.room import left_rooms, make_room, remove_room, remove_rooms
from agents_app.runners import RUNNERS
from agents_app.runners.base import RunControl, RunSpec, verdict
from agents_app.transcript import Transcript

log = structlog.get_logger("drover.execute")
# After this much the slot goes back through the queue, so that agents share the threads.
MOST_RUNS_IN_A_ROW = 50
MOST_SECONDS_IN_A_ROW = 30.0


@dataclass(frozen=True, slots=True)
class Host:
    """The worker process a run is executed in."""

    worker_id: int
    clock: Callable[[], datetime]
    live: dict[int, RunControl] = field(default_factory=dict)
    draining: threading.Event = field(default_factory=threading.Event)


@dataclass(frozen=True, slots=True)
class Definition:
    """What a worker keeps of an agent between its runs."""

    name: str
    command: tuple[str, ...]
    directory: str
    instructions: str
    params: dict[str, Any]
    env: dict[str, str]
    runtime: str


def execute(run_id: int, host: Host) -> int:
    """Returns how many runs were executed: none if somebody else has started it already."""
    if host.draining.is_set():
        return 0
    job = in_transaction(lambda: lifecycle.start(run_id, host.worker_id, host.clock()))
    if job is None:
        log.debug("hint.claim_noop", run_id=run_id)
    done, give_back_at = 0, time.monotonic() + MOST_SECONDS_IN_A_ROW
    while job is not None:
        done += 1
        tired = done >= MOST_RUNS_IN_A_ROW or time.monotonic() >= give_back_at
        job = _run(job, host, hand_over=not tired)
    return done


def _run(job: Job, host: Host, *, hand_over: bool) -> Job | None:
    """Perform the job and finish it; what is returned is started already."""
    transcript = Transcript(job.tenant_id, job.run_id, host.worker_id)
    control = RunControl()
    host.live[job.run_id] = control
    try:
        ending = _perform(job, control, transcript)
        hand_over = hand_over and not host.draining.is_set()
        following = _finish(job, ending, transcript, host, hand_over)
    finally:
        # Only now: a running row that its worker does not know counts as lost.
        del host.live[job.run_id]
    if following is None:
        dispatch.admit_under_cap(job.tenant_id, host.clock())
    elif not hand_over:
        relay.hint(following.run_id, following.agent_id)
        return None
    return following


def _finish(
    job: Job, ending: Ending, transcript: Transcript, host: Host, hand_over: bool
) -> Job | None:
    """A run that has ended must be recorded: the database may be away, but not given up on."""

    def at_once() -> Job | None:
        return lifecycle.hand_over_at_once(job, ending, host.clock(), host.worker_id)

    def change() -> Job | None:
        transcript.store_rest()
        return lifecycle.finish(job, ending, host.clock(), host.worker_id, hand_over=hand_over)

    while True:
        try:
            if hand_over and transcript.is_stored and (following := at_once()):
                return following
            return in_transaction(change)
        except (OperationalError, InterfaceError) as error:
            # If it stays away, the lease ends, and the guard ends this process.
            log.warning("run.finish_delayed", **_told(job), error=str(error))
            connection.close()
        except DatabaseError:
            log.exception("run.finish_refused", **_told(job))
            transcript.forget()
            ending = replace(ending, error="the database refused what was to be said of this run")
        time.sleep(1)


def _told(job: Job) -> dict[str, Any]:
    """What every line about a run says."""
    whose = {"tenant_id": job.tenant_id, "agent_id": job.agent_id}
    return {"trace_id": job.trace_id, **whose, "run_id": job.run_id}


def _perform(job: Job, control: RunControl, transcript: Transcript) -> Ending:
    try:
        definition = definition_of(job.agent_id, job.revision)
        spec = _prepare(job, definition)
        outcome = RUNNERS[definition.runtime].run(spec, control, transcript)
    except DroverError as error:
        return Ending("failed", error=str(error))
    except Exception as error:
        # Whatever went wrong, the run ends and its slot is free again.
        log.exception("run.not_performed", **_told(job))
        return Ending("failed", error=f"not_performed: {type(error).__name__}: {error}")
    finally:
        remove_room(job.run_id)
        transcript.close()
    judged = verdict(outcome)
    return Ending(
        state=judged.state,
        error=judged.error,
        exit_code=outcome.exit_code,
        pid=outcome.pid,
        wants_rerun=judged.wants_rerun,
        output_bytes=transcript.total_bytes,
        output_cut_bytes=transcript.buffer.left_out_bytes,
    )


def _prepare(job: Job, definition: Definition) -> RunSpec:
    """A private directory with the prompt in it, and the environment."""
    prompt = build_prompt(
        definition.instructions, definition.params, job.trigger, job.prompt, job.context
    )
    room, prompt_file = make_room(job.run_id, prompt)
    env = run_environment(
        _server_environment(),
        definition.env,
        run_id=job.run_id,
        agent=definition.name,
        agent_dir=definition.directory,
        state_dir=_state_dir(job.agent_id),
        trigger=job.trigger,
        schedule_id=job.schedule_id,
        attempt=job.attempt,
        timeout_seconds=job.timeout_seconds,
        prompt=prompt,
        prompt_file=prompt_file,
        trace_id=job.trace_id,
    )
    return RunSpec(
        run_id=job.run_id,
        argv=_resolve(definition),
        env=env,
        cwd=room,
        prompt_file=prompt_file,
        timeout_seconds=job.timeout_seconds,
        grace_seconds=CONF.grace_seconds,
    )


def _resolve(definition: Definition) -> tuple[str, ...]:
    """A program named `./x` is a file of the agent, wherever the run's own directory is."""
    if not definition.command:
        raise Refused("no command: name the program to run in the agent's `command`")
    program, *arguments = definition.command
    if program.startswith("./"):
        program = os.path.join(definition.directory, program[2:])  # noqa: PTH118
    return program, *arguments


def clear_rooms() -> None:
    """What runs left behind whose worker died before it could tidy up; at a worker's start."""
    rooms = set(left_rooms())
    going_on = Run.objects.filter(pk__in=rooms, slot__isnull=False)
    remove_rooms(rooms - set(going_on.values_list("pk", flat=True)))


@lru_cache(maxsize=1)
def _server_environment() -> dict[str, str]:
    return base_environment(os.environ)


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
        runtime=agent.runtime.get("type", "process"),
    )
