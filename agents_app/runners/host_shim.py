#!/usr/bin/python3 -IS
"""The shim that sudo.py runs as another user: starts a program and kills everything it started.

The request comes on standard input; when that pipe closes, the program is killed. Uses only the
standard library of the host's own Python, 3.9 or newer.
"""

import contextlib
import json
import os
import pwd
import resource
import select
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parent))

from guard import (  # type: ignore[import-not-found]
    become_subreaper,
    children_of_this,
    kill_with_group,
)
from restrict import OpenRules, give_up_rights, new_ruleset, restrict_files  # type: ignore[import-not-found]

LINGER_SECONDS = 0.25
KILL_SECONDS = 5.0
PIECE = 65536


def main(arguments: "list[str]") -> int:
    if arguments[:1] == ["--kill"]:
        return kill_leftovers(*arguments[1:3])
    become_subreaper()
    request = read_request()
    workdir = Path(tempfile.mkdtemp(prefix="drover-run-"))
    try:
        env = prepare(request, workdir)
        return perform(request, workdir, env)
    finally:
        kill_all()
        shutil.rmtree(workdir, ignore_errors=True)


# --- preparation --------------------------------------------------------------------------


def read_request() -> "dict[str, Any]":
    line = bytearray()
    while not line.endswith(b"\n"):
        byte = os.read(0, 1)
        if not byte:
            sys.exit(1)
        line += byte
    request: dict[str, Any] = json.loads(line)
    return request


def prepare(request: "dict[str, Any]", workdir: Path) -> "dict[str, str]":
    """Create a copy of the workdir; returns the environment with the paths of the copy."""
    for name in request["directories"]:
        (workdir / name).mkdir(0o700, parents=True, exist_ok=True)
    for name, mode, size in request["files"]:
        receive(workdir / name, mode, size)
    me = pwd.getpwuid(os.getuid())
    moved = {request["workdir"]: str(workdir)}
    for old in request["state"]:
        kept = Path(me.pw_dir, ".drover", "state", Path(old).name)
        with contextlib.suppress(OSError):
            kept.mkdir(0o700, parents=True, exist_ok=True)
        moved[old] = str(kept)
    env = {name: relocated(value, moved) for name, value in request["env"].items()}
    home = me.pw_dir
    if request["sandbox"]:
        request["sandbox"]["write"] = [
            relocated(each, moved) for each in request["sandbox"]["write"]
        ]
        # Agents that share the user must not share its home.
        home = env.get("HOME", home)
        with contextlib.suppress(OSError):
            Path(home).mkdir(0o700, parents=True, exist_ok=True)
    return {**env, "HOME": home, "USER": me.pw_name, "LOGNAME": me.pw_name}


def receive(path: Path, mode: int, size: int) -> None:
    with open(os.open(path, os.O_WRONLY | os.O_CREAT, mode), "wb") as file:  # noqa: PTH123
        while size:
            piece = os.read(0, min(size, PIECE))
            if not piece:
                sys.exit(1)
            file.write(piece)
            size -= len(piece)


def relocated(value: str, moved: "dict[str, str]") -> str:
    for old, new in moved.items():
        if value == old or value.startswith(f"{old}/"):
            return new + value[len(old) :]
    return value


def problem_with(program: str, path: str) -> str:
    """Why the program cannot be executed, checked before the answer `ok`."""
    if shutil.which(program, path=path):
        return ""
    if "/" in program and Path(program).exists():
        return f"EACCES: {program!r} may not be executed by this user; chmod +x it"
    return f"ENOENT: {program!r} was not found by this user; install it or correct `command`"


def perform(request: "dict[str, Any]", workdir: Path, env: "dict[str, str]") -> int:
    argv = request["argv"]
    answer = problem_with(argv[0], env.get("PATH", "")) or "ok"
    os.write(1, f"{request['nonce']} {answer}\n".encode())
    if answer != "ok":
        return 127
    # The thread of the sandbox counts as a process, too.
    limit = request["pids_limit"] + processes_of_this_user() + bool(request["sandbox"])
    with contextlib.suppress(OSError, ValueError):
        resource.setrlimit(resource.RLIMIT_NPROC, (limit, limit))
    with (workdir / request["stdin"]).open("rb") as prompt:
        options = {"stdin": prompt, "cwd": workdir, "env": env, "start_new_session": True}
        try:
            child = start(argv, options, request["sandbox"])
        except OSError as error:
            os.write(2, f"drover: {argv[0]} cannot be executed: {error.strerror}\n".encode())
            return 126
    nowhere = os.open(os.devnull, os.O_RDWR)
    os.dup2(nowhere, 1)
    os.dup2(nowhere, 2)
    return wait_for_end(child)


def start(
    argv: "list[str]", options: "dict[str, Any]", sandbox: "dict[str, Any] | None"
) -> "subprocess.Popen[bytes]":
    """Start the program; in a thread with the rights of the sandbox, if there is one."""
    if not sandbox:
        return subprocess.Popen(argv, **options)
    started: list[subprocess.Popen[bytes]] = []
    failed: list[BaseException] = []

    def act() -> None:
        version, filter_calls = sandbox["version"], sandbox["filter_calls"]
        try:
            give_up_rights(filter_calls=filter_calls, drop_capabilities=False)
            if version:
                rules = OpenRules(sandbox["read"], sandbox["write"], version)
                restrict_files(new_ruleset(version, rules))
            started.append(subprocess.Popen(argv, **options))
        except BaseException as error:
            failed.append(error)

    thread = threading.Thread(target=act)
    thread.start()
    thread.join()
    if failed:
        raise failed[0]
    return started[0]


def processes_of_this_user() -> int:
    count = 0
    for entry in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):
            count += entry.stat().st_uid == os.getuid()
    return count


# --- supervision --------------------------------------------------------------------------


def wait_for_end(child: "subprocess.Popen[bytes]") -> int:
    """The exit code of the program; kills everything when the pipe closes."""
    wake, wake_end = os.pipe()
    os.set_blocking(wake_end, False)
    signal.set_wakeup_fd(wake_end)
    signal.signal(signal.SIGCHLD, lambda *_: None)
    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        signal.signal(number, lambda *_: terminate(child))
    while child.poll() is None:
        ready, _, _ = select.select([0, wake], [], [], 1.0)
        if wake in ready:
            os.read(wake, 4096)
        if 0 in ready:
            if not os.read(0, 1):
                kill_all()
                break
            terminate(child)
    linger()
    code = child.wait()
    if code < 0:
        kill_all()
        die_of(-code)
    return code


def terminate(child: "subprocess.Popen[bytes]") -> None:
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(child.pid, signal.SIGTERM)


def linger() -> None:
    """Give processes that outlive the program, such as `tee`, time to write their last lines."""
    until = time.monotonic() + LINGER_SECONDS
    while time.monotonic() < until and reap():
        time.sleep(0.01)


def reap() -> bool:
    """Reap dead children; False when there is no child."""
    with contextlib.suppress(ChildProcessError):
        while os.waitpid(-1, os.WNOHANG)[0]:
            pass
        return True
    return False


def kill_all() -> None:
    give_up_at = time.monotonic() + KILL_SECONDS
    while time.monotonic() < give_up_at:
        for pid in children_of_this():
            kill_with_group(pid)
        if not reap():
            return
        time.sleep(0.002)


def die_of(number: int) -> None:
    """End by the same signal as the program, so that sudo reports that signal."""
    with contextlib.suppress(OSError, ValueError):
        signal.signal(number, signal.SIG_DFL)
    os.kill(os.getpid(), number)
    time.sleep(1)


def kill_leftovers(run_id: str, trace_id: str) -> int:
    """Kill the processes of this user that have the run in their environment."""
    wanted = {f"DROVER_RUN_ID={run_id}".encode(), f"DROVER_TRACE_ID={trace_id}".encode()}
    for entry in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):
            if wanted <= set((entry / "environ").read_bytes().split(b"\0")):
                os.kill(int(entry.name), signal.SIGKILL)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
