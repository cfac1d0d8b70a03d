"""`manage.py up`: a complete private stack of real processes."""

import base64
import os
import signal
import socket
import stat
import subprocess
import sys
import time
import urllib.error
import urllib.request
from pathlib import Path

import psutil
import pytest

from agents_app.conf import ROOT
from agents_app.installation.up_lock import hold_lock, running_up
from tests.parts.fixtures import NewStack
from tests.parts.ports import free_port
from tests.parts.processes import all_gone, environment_of, is_gone, tree_of
from tests.parts.stack_part import PrivateStack
from tests.parts.waiting import wait_for

WAITER = """---
description: goes on until the file is there
command: [sh, -c, "until [ -e {file} ]; do sleep 0.1; done"]
schedule: 1h
---
"""


def get(url: str, login: str = "") -> tuple[int, str]:
    request = urllib.request.Request(url)
    if login:
        request.add_header("Authorization", "Basic " + base64.b64encode(login.encode()).decode())
    try:
        with urllib.request.urlopen(request, timeout=10) as answer:
            return answer.status, answer.read().decode()
    except urllib.error.HTTPError as error:
        return error.code, ""


def commands(pids: list[int]) -> str:
    return "\n".join(" ".join(psutil.Process(pid).cmdline()) for pid in pids)


def test_a_fresh_directory_becomes_a_working_stack(tmp_path: Path) -> None:
    """The address of the gateway, also for runs, is read from the file of the project."""
    with PrivateStack(tmp_path, DROVER_ADMIN_PASSWORD="", DROVER_FLOWER="yes") as stack:
        url, port = stack.url, stack.env.pop("DROVER_PORT")
        lines = f"[gateway]\nport = {port}\nurl = 'http://drover.test:{port}'\n"
        (stack.project / "config.toml").write_text(lines)
        process = stack.up(90)  # it creates all tables
        pids = tree_of(process.pid)
        assert get(f"{url}/healthz")[0] == 200
        assert get(f"{url}/admin/login/")[0] == 200
        said = stack.log("up")
        assert "migrations applied" in said
        assert f"dashboard  {url}/admin/" in said
        serving = [pid for pid in pids if "agents_app.stack.serve" in commands([pid])]
        urls = {environment_of(pid)["DROVER_GATEWAY_URL"] for pid in serving}
        assert urls == {f"http://drover.test:{port}"}
        assert said.count("shown only once") == 1
        names = ("redis", "guard.py", "worker", "beat", "gateway_app", "flower")
        assert all(name in commands(pids) for name in names)
        process.send_signal(signal.SIGINT)
        assert process.wait(20) == 0
        assert all_gone(pids)
        password = said.split("password ")[1].split()[0]
        stack.up()
        again = stack.log("up")[len(said) :]
        assert "migrations applied" not in again
        assert "shown only" not in again
        assert password not in again


def test_flower_sees_the_workers_and_requires_the_password(
    new_stack: NewStack,
) -> None:
    stack = new_stack(DROVER_WORKERS="2", DROVER_FLOWER="yes")
    stack.up()
    url = f"http://127.0.0.1:{stack.conf.flower_port}"
    assert get(f"{url}/")[0] == 401
    assert get(f"{url}/api/workers")[0] == 401
    secret = stack.data / "flower.password"
    assert stat.S_IMODE(secret.stat().st_mode) == 0o600
    login = f"admin:{secret.read_text().strip()}"
    for name in ("worker-1@", "worker-2@"):
        wait_for(lambda n=name: n in get(f"{url}/api/workers?refresh=1", login)[1], 20)  # type: ignore[misc]
    assert '"name": "drover"' in get(f"{url}/api/queues/length", login)[1]


def test_secrets_are_neither_in_arguments_nor_in_children_that_do_not_need_them(
    new_stack: NewStack,
) -> None:
    stack = new_stack(
        DROVER_ADMIN_PASSWORD="canary-password",
        DROVER_BOOTSTRAP_TOKEN="canary-token",
        DROVER_FLOWER="yes",
    )
    process = stack.up()
    pids = tree_of(process.pid)
    secret = (stack.data / "flower.password").read_text().strip()
    assert "canary" not in commands(pids)
    assert secret not in commands(pids)
    assert not [pid for pid in pids if "canary" in str(environment_of(pid))]
    (flower,) = [pid for pid in pids if "flower" in commands([pid])]
    assert "DATABASE_URL" not in environment_of(flower)
    assert secret not in stack.log("up")
    assert "canary" not in stack.log("up")


def test_a_second_up_names_the_process_that_uses_the_directory(new_stack: NewStack) -> None:
    stack = new_stack()
    process = stack.up()
    second = stack.manage("up")
    assert second.returncode == 1
    assert second.stderr.startswith("drover: `manage.py up` already runs for ")
    assert f"as process {process.pid}." in second.stderr
    assert len(second.stderr.splitlines()) == 1


@pytest.mark.slow
def test_a_killed_up_leaves_no_process_and_starts_again(new_stack: NewStack) -> None:
    stack = new_stack()
    stack.write_agent("waiter", WAITER.format(file="/nowhere"))
    process = stack.up()
    (run,) = stack.wait_for_rows("SELECT pid FROM drover_run WHERE pid IS NOT NULL")
    pids = tree_of(process.pid)
    assert run["pid"] in pids
    process.kill()
    process.wait()
    wait_for(lambda: all_gone(pids), 8, f"left behind: {pids}")
    stack.up()


@pytest.mark.slow
def test_a_killed_gateway_is_restarted(new_stack: NewStack) -> None:
    stack = new_stack()
    process = stack.up()
    (gateway,) = [pid for pid in tree_of(process.pid) if "gateway_app" in commands([pid])]
    os.kill(gateway, signal.SIGKILL)
    wait_for(lambda: "gateway was killed by SIGKILL; next start in 0.5 s" in stack.log("up"))
    wait_for(lambda: _answers(f"{stack.url}/healthz"), 15)
    assert is_gone(gateway)


def test_ctrl_c_lets_a_run_finish(new_stack: NewStack) -> None:
    stack = new_stack()
    finish = stack.data / "finish"
    stack.write_agent("waiter", WAITER.format(file=finish))
    process = stack.up()
    stack.wait_for_rows("SELECT 1 FROM drover_run WHERE state = 'running'")
    process.send_signal(signal.SIGINT)
    wait_for(lambda: "waiting for 1 run to finish" in stack.log("up"), 15)
    # The run reports to the gateway until its end.
    assert get(f"{stack.url}/healthz")[0] == 200
    finish.touch()
    assert process.wait(30) == 0
    assert stack.rows("SELECT state FROM drover_run") == [{"state": "succeeded"}]


@pytest.mark.slow
def test_a_second_ctrl_c_ends_the_run_with_a_reason_in_its_row(new_stack: NewStack) -> None:
    stack = new_stack(DROVER_GRACE_SECONDS="2")
    stack.write_agent("waiter", WAITER.format(file="/nowhere"))
    process = stack.up()
    (run,) = stack.wait_for_rows("SELECT pid FROM drover_run WHERE pid IS NOT NULL")
    pids = tree_of(process.pid)
    process.send_signal(signal.SIGINT)
    wait_for(lambda: "stopping" in stack.log("up"))
    process.send_signal(signal.SIGINT)
    assert process.wait(20) == 0, stack.log("up")
    assert all_gone([*pids, run["pid"]])
    assert stack.rows("SELECT state FROM drover_run") == [{"state": "stopped"}]


@pytest.mark.parametrize("delay", [0, 0.2, 0.8])
@pytest.mark.slow
def test_ctrl_c_during_the_start_leaves_no_process_and_prints_no_traceback(
    new_stack: NewStack, delay: float
) -> None:
    stack = new_stack()
    process = stack.begin_up()
    wait_for(lambda: running_up(stack.data) == process.pid)
    time.sleep(delay)
    process.send_signal(signal.SIGINT)
    assert process.wait(20) in (0, 130)
    assert "Traceback" not in stack.log("up")
    # Processes that `up` started hold the lock until they exit.
    with hold_lock(stack.data):
        pass


@pytest.mark.slow
def test_up_uses_a_configured_redis(new_stack: NewStack, redis_server: object) -> None:
    stack = new_stack(redis_url=redis_server.url)  # type: ignore[attr-defined]
    process = stack.up()
    assert "redis-server" not in commands(tree_of(process.pid))
    assert not (stack.data / "redis").exists()


def test_the_password_of_redis_is_never_printed(new_stack: NewStack, tmp_path: Path) -> None:
    port = free_port()
    config = tmp_path / "r.conf"
    config.write_text(f"port {port}\nrequirepass canary-pass\nsave ''\n")
    from tests.parts.redis_part import valkey_binary

    server = subprocess.Popen([str(valkey_binary()), str(config)], cwd=tmp_path)
    try:
        stack = new_stack(redis_url=f"redis://:canary-pass@127.0.0.1:{port}/0")
        process = stack.up()
        assert "canary" not in commands(tree_of(process.pid))
        assert "canary" not in stack.log("up")
        stack.close()
    finally:
        server.terminate()
        server.wait()


def _answers(url: str) -> bool:
    try:
        return get(url)[0] == 200
    except OSError:
        return False


def refused(stack: PrivateStack) -> str:
    """The one line with which `up` refuses to start."""
    done = stack.manage("up")
    assert done.returncode == 1, done.stdout
    assert "Traceback" not in done.stderr
    (line,) = done.stderr.splitlines()
    return line


def test_a_port_in_use_is_named(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
        stack = PrivateStack(tmp_path, DROVER_PORT=str(port))
        assert refused(stack) == f"drover: port {port} is in use. Set DROVER_PORT to a free port."


@pytest.mark.parametrize(
    ("variables", "says"),
    [
        ({"DATABASE_URL": "mysql://u:canary@h/x"}, "DATABASE_URL starts with 'mysql'"),
        ({"DATABASE_URL": "postgresql://u:canary@127.0.0.1:1/x"}, "cannot open the database"),
        ({"DATABASE_URL": "sqlite:////nowhere/x.sqlite3"}, "unable to open database file"),
        ({"DROVER_PROJECT": "/nowhere"}, "project directory /nowhere does not exist"),
        ({"DROVER_PORT": "http"}, "DROVER_PORT='http': expected a whole number"),
        ({"DROVER_DATA": "/proc/nowhere"}, "/proc/nowhere"),
    ],
)
def test_an_invalid_setting_is_reported_in_one_line(
    tmp_path: Path, variables: dict[str, str], says: str
) -> None:
    line = refused(PrivateStack(tmp_path, **variables))
    assert says in line
    assert "canary" not in line


def test_up_starts_from_any_directory_with_relative_paths(
    tmp_path: Path, new_stack: NewStack
) -> None:
    stack = new_stack(DROVER_DATA="stack0/data", DROVER_PROJECT="stack0/project")
    process = subprocess.Popen(
        [sys.executable, str(ROOT / "manage.py"), "up"],
        cwd=tmp_path,
        env=stack.env,
        stdout=subprocess.PIPE,
        text=True,
    )
    stack.processes["up"] = process  # type: ignore[assignment]
    assert process.stdout is not None
    said = ""
    while "stop " not in said:
        line = process.stdout.readline()
        assert line, said
        said += line
    assert f"project    {tmp_path}/stack0/project" in said
    assert (tmp_path / "stack0/data/redis").is_dir()
    process.stdout.close()
