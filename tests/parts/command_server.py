"""Commands of `manage.py` and `drover` as forks of one process that has loaded Drover.

To load Drover takes most of the time of a short command. The server loads it once; each command is
a process of its own, with the arguments, files, variables and directory of the program that asked.

`python -IS command_server.py SOCKET [--as DROVER] ARGUMENT ...` asks the server at SOCKET, and
executes `manage.py`, or the program DROVER, itself if the server has other settings.
"""

import contextlib
import json
import os
import socket
import sys

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
OTHER_SETTINGS = -1
MANAGE = "manage.py"
# They name another project than that of the server; `tenant` has options of these names.
_OF_A_PROJECT = ("--project", "--data")
_LONGEST = 1 << 20


def ask(path: str, program: str, arguments: list[str]) -> int:
    """The exit status of the command; OTHER_SETTINGS if the server cannot execute it."""
    if program != MANAGE and any(word.startswith(_OF_A_PROJECT) for word in arguments):
        return OTHER_SETTINGS
    with socket.socket(socket.AF_UNIX) as connection:
        connection.connect(path)
        request = {
            "program": program,
            "arguments": arguments,
            "directory": os.getcwd(),
            "env": dict(os.environ),
        }
        socket.send_fds(connection, [json.dumps(request).encode() + b"\n"], [0, 1, 2])
        answer = connection.recv(16)
    # A command that was killed sends no status.
    return int(answer) if answer else 137


def serve(path: str) -> None:
    """Execute commands until the process is ended; `path` exists when it is ready."""
    import signal

    import django

    django.setup()
    import agents_app.cli  # noqa: F401  # not used here: the forks have it loaded

    signal.signal(signal.SIGCHLD, signal.SIG_IGN)
    settings = _settings(dict(os.environ))
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(f"{path}.new")
        listener.listen(16)
        os.rename(f"{path}.new", path)
        while True:
            connection, _ = listener.accept()
            with connection:
                request, files = _received(connection)
                if _settings(request["env"]) != settings:
                    connection.sendall(str(OTHER_SETTINGS).encode())
                elif os.fork() == 0:
                    listener.close()
                    _execute(connection, request, files)
                for file in files:
                    os.close(file)


def _settings(env: dict[str, str]) -> dict[str, str]:
    """The variables that are read when Drover is loaded."""
    read = ("DROVER_", "DJANGO_", "DATABASE_", "REDIS_", "PYTHON")
    return {name: value for name, value in env.items() if name.startswith(read)}


def _received(connection: socket.socket) -> tuple[dict, list[int]]:  # type: ignore[type-arg]
    data, files, _, _ = socket.recv_fds(connection, _LONGEST, 3)
    while not data.endswith(b"\n"):
        data += connection.recv(_LONGEST)
    return json.loads(data), files


def _execute(connection: socket.socket, request: dict, files: list[int]) -> None:  # type: ignore[type-arg]
    import signal
    import threading

    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    os.setsid()
    for number, file in enumerate(files):
        os.dup2(file, number)
        os.close(file)
    # The streams of the server remember that its files can be rewound.
    sys.stdin = open(0, closefd=False)  # noqa: SIM115
    sys.stdout = open(1, "w", closefd=False)  # noqa: SIM115
    sys.stderr = open(2, "w", buffering=1, errors="backslashreplace", closefd=False)  # noqa: SIM115
    os.chdir(request["directory"])
    os.environ.clear()
    os.environ.update(request["env"])
    sys.argv = [request["program"], *request["arguments"]]
    threading.Thread(target=_end_with_caller, args=(connection,), daemon=True).start()
    status = 1
    try:
        status = _run_command()
    finally:
        for stream in (sys.stdout, sys.stderr):
            with contextlib.suppress(OSError):
                stream.flush()
        with contextlib.suppress(OSError):
            connection.sendall(str(status).encode())
        os._exit(status)


def _run_command() -> int:
    import manage
    from scheduler_project import command

    try:
        (manage if sys.argv[0] == MANAGE else command).main()
    except SystemExit as end:
        if isinstance(end.code, str):
            sys.stderr.write(f"{end.code}\n")
        return end.code if isinstance(end.code, int) else int(end.code is not None)
    except Exception:
        import traceback

        traceback.print_exc()
        return 1
    return 0


def _end_with_caller(connection: socket.socket) -> None:
    import signal

    with contextlib.suppress(OSError):
        connection.recv(1)
    os.kill(os.getpid(), signal.SIGTERM)


if __name__ == "__main__":
    if sys.argv[1] == "--serve":
        sys.path[0] = ROOT
        serve(sys.argv[2])
    own = sys.argv[3] if sys.argv[2:3] == ["--as"] else MANAGE
    words = sys.argv[2 if own == MANAGE else 4 :]
    status = ask(sys.argv[1], own, words)
    if status == OTHER_SETTINGS:
        os.execv(sys.executable, [sys.executable, own, *words])
    sys.exit(status)
