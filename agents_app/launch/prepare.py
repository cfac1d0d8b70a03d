"""Builds the RunSpec of a run: workdir, prompt, secrets, environment and mounts."""

import os
from functools import lru_cache
from pathlib import Path

from agents_app.conf import CONF, ROOT
from agents_app.errors import Refused
from agents_app.harness import HARNESSES, SCRIPT
from agents_app.installation import (
    allow_passage,
    create_private_directory,
    gateway_socket_path,
    socket_directory,
    state_directory,
)
from agents_app.launch.definition import Definition
from agents_app.launch.prompt import build_prompt
from agents_app.launch.sandbox import HOME_NAME, sandbox_of, sandbox_variables
from agents_app.launch.workdir import (
    add_file,
    make_workdir,
    secret_file,
    signal_directory,
    workdir_of,
    write_secret,
)
from agents_app.runners import (
    Mount,
    RunSpec,
    Sandbox,
    base_environment,
    run_environment,
    this_kernel,
)
from agents_app.runs import Job
from agents_app.secrets import Secrets, resolved_file_variables

AGENT_BIN = ROOT / "agents_app" / "agent_bin"


def prepare_run(
    job: Job,
    definition: Definition,
    secrets: Secrets,
    instructions: str,
    *,
    is_running: bool = False,
) -> RunSpec:
    """Create the workdir with prompt and secret files, and build the RunSpec.

    The files of a run that `is_running` are not written: its program reads them."""
    text, script = ("", instructions) if definition.body_is_script else (instructions, None)
    prompt = build_prompt(text, definition.params, job.trigger, job.prompt, job.context)
    if is_running:
        workdir, prompt_file = workdir_of(job.run_id)
    else:
        workdir, prompt_file = _write_workdir(job, prompt, script)
    state_dir, shared = _state_dir(job.agent_id), _shared_dir(definition.project)
    argv, mounts = _resolve(definition), _mounts(definition, workdir, state_dir, shared)
    sandbox = _sandbox(definition, mounts, argv[0])
    variables = _secret_variables(secrets, workdir, is_running=is_running) | (
        {"DROVER_SHARED_DIR": str(shared)} if shared else {}
    )
    if definition.runtime.type == "host-user":
        allow_passage(CONF.data)
    base = _base_environment(sandbox, state_dir, workdir)
    return RunSpec(
        run_id=job.run_id,
        argv=_inside_sandbox(definition, argv) if sandbox else argv,
        env=_environment(job, definition, base, variables, prompt, prompt_file, state_dir),
        cwd=workdir,
        prompt_file=prompt_file,
        timeout_seconds=job.timeout_seconds,
        grace_seconds=CONF.grace_seconds,
        trace_id=job.trace_id,
        runtime=definition.runtime,
        mounts=mounts,
        sandbox=sandbox,
        messages_on_stdin=definition.messages_on_stdin,
    )


def _write_workdir(job: Job, prompt: str, script: str | None) -> tuple[Path, Path]:
    workdir, prompt_file = make_workdir(job.run_id, prompt, job.agent_id)
    if script is not None:
        add_file(workdir, SCRIPT, script)
    return workdir, prompt_file


def _secret_variables(secrets: Secrets, workdir: Path, *, is_running: bool) -> dict[str, str]:
    """The variables of the run's credentials; some contain the path of a secret file."""
    env: dict[str, str] = {}
    for file in secrets.files:
        known = secret_file(workdir, file.name)
        path = known if is_running else write_secret(workdir, file.name, file.text)
        env = resolved_file_variables(file.variables, path) | env
    return {**env, **secrets.env}


def _environment(
    job: Job,
    definition: Definition,
    base: dict[str, str],
    variables: dict[str, str],
    prompt: str,
    prompt_file: Path,
    state_dir: Path,
) -> dict[str, str]:
    return run_environment(
        base,
        {**definition.env, **variables},
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
        gateway_socket=gateway_socket_path(CONF.data) if CONF.gateway_url else None,
        signal_dir=signal_directory(job.run_id),
        token=job.token,
    )


def _resolve(definition: Definition) -> tuple[str, ...]:
    """The command; a program `./x` is a file in the agent's directory."""
    if not definition.command:
        raise Refused("no command: name the program to run in the agent's `command` or a `harness`")
    program, *arguments = definition.command
    if program.startswith("./"):
        program = os.path.join(definition.directory, program[2:])  # noqa: PTH118
    return program, *arguments


def _mounts(
    definition: Definition, workdir: Path, state_dir: Path, shared: Path | None
) -> tuple[Mount, ...]:
    """The directories that a container must see, at their paths on the host."""
    return (
        Mount(workdir, writable=True),
        Mount(state_dir, writable=True),
        Mount(Path(definition.directory)),
        Mount(AGENT_BIN),
        Mount(_gateway_directory()),
        *([Mount(shared, definition.shared_writable)] if shared else ()),
    )


def _sandbox(definition: Definition, mounts: tuple[Mount, ...], program: str) -> Sandbox | None:
    """A container is a sandbox of its own."""
    if definition.runtime.type == "container":
        return None
    path = definition.env.get("PATH", _server_environment()["PATH"])
    own = (definition.runtime.run_as, definition.project)
    return sandbox_of(definition.sandbox, mounts, path, program, *own)


def _base_environment(sandbox: Sandbox | None, state_dir: Path, workdir: Path) -> dict[str, str]:
    """The server's variables; in a sandbox with a private home and a place for temporary files."""
    base = _server_environment()
    if sandbox is None:
        return base
    return base | sandbox_variables(state_dir, workdir, base["PATH"])


def _inside_sandbox(definition: Definition, argv: tuple[str, ...]) -> tuple[str, ...]:
    """The command of a tool that must know that it is inside a sandbox, if it is."""
    harness = HARNESSES.get(definition.harness)
    if harness is None or harness.inside_sandbox is None or not this_kernel().landlock:
        return argv
    return harness.inside_sandbox(argv)


@lru_cache(maxsize=1)
def _gateway_directory() -> Path:
    """The directory of the gateway's socket; created here if the gateway has not started yet."""
    return socket_directory(CONF.data)


def _shared_dir(project: str) -> Path | None:
    """The directory that all agents of the project may read; None if it is outside the project."""
    path = f"{project}/shared"
    if not project or not os.path.isdir(path):  # noqa: PTH112
        return None
    shared = Path(path)
    return shared if shared.resolve().is_relative_to(project) else None


@lru_cache(maxsize=1)
def _server_environment() -> dict[str, str]:
    """The environment of this process for runs, with the commands of agents first on PATH."""
    base = base_environment(os.environ)
    return base | {"PATH": f"{AGENT_BIN}:{base['PATH']}"}


@lru_cache(maxsize=4096)
def _state_dir(agent_id: int) -> Path:
    """The directory that is kept between the runs of an agent."""
    path = state_directory(CONF.data, agent_id)
    create_private_directory(path)
    home = path / HOME_NAME
    # The runs of the agent own the directory: a link of theirs must not be followed.
    if not os.path.lexists(home):
        create_private_directory(home)
        if os.geteuid() == 0:
            # An earlier run may have made the directory that of another user.
            owner = path.stat()
            os.chown(home, owner.st_uid, owner.st_gid, follow_symlinks=False)
    return path
