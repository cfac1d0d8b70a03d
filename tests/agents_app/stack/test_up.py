"""`manage.py up`: a complete private stack of real processes.

tests/end_to_end/test_stopping.py ends stacks, test_refusals.py has settings that `up` refuses.
"""

import base64
import os
import signal
import stat
import subprocess
import sys
import time
import urllib.error
import urllib.request
from pathlib import Path

import psutil
import pytest
import redis
from cryptography.fernet import Fernet

from agents_app.conf import ROOT
from agents_app.installation.redis_server import redis_password, redis_socket_path
from agents_app.installation.up_lock import hold_lock, running_up
from tests.parts.fixtures import NewStack
from tests.parts.ports import free_port
from tests.parts.processes import all_gone, environment_of, is_gone, tree_of
from tests.parts.redis_part import RedisServer
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


@pytest.fixture(scope="module")
def shared(new_shared_stack: NewStack) -> PrivateStack:
    """A stack that was started with relative paths, from a directory that is not the checkout, with
    umask 0, on a data directory and a database that all users may read."""
    stack = new_shared_stack(
        DROVER_WORKERS="2",
        DROVER_FLOWER="yes",
        DROVER_ADMIN_PASSWORD="canary-password",
        DROVER_BOOTSTRAP_TOKEN="canary-token",
        DROVER_CREDENTIAL_KEYS=Fernet.generate_key().decode(),
        HOOK_SECRET="secret-of-a-hook",
        UNKNOWN_SECRET="secret-of-another-program",
    )
    (stack.project / "config.toml").write_text(
        "[webhooks.gh]\ntype = 'github'\nsecrets = ['env:HOOK_SECRET']\n"
    )
    stack.data.chmod(0o755)
    assert stat.S_IMODE((stack.data / "drover.sqlite3").stat().st_mode) & 0o044
    directory = stack.data.parent
    relative = {"DROVER_DATA": "data", "DROVER_PROJECT": "project"}
    with (directory / "up.log").open("ab") as log:
        stack.processes["up"] = subprocess.Popen(
            [sys.executable, str(ROOT / "manage.py"), "up"],
            cwd=directory,
            env={**stack.env, **relative},
            stdout=log,
            stderr=log,
            start_new_session=True,
            umask=0,
        )
    wait_for(lambda: "Drover is ready" in stack.log("up"), 30, lambda: stack.log("up"))
    return stack


def test_up_starts_from_any_directory_with_relative_paths(shared: PrivateStack) -> None:
    assert f"project    {shared.project}" in shared.log("up")
    assert (shared.data / "redis").is_dir()


def test_flower_sees_the_workers_and_requires_the_password(shared: PrivateStack) -> None:
    url = f"http://127.0.0.1:{shared.conf.flower_port}"
    assert get(f"{url}/")[0] == 401
    assert get(f"{url}/api/workers")[0] == 401
    assert get(f"{url}/metrics")[0] == 401
    secret = shared.data / "flower.password"
    assert stat.S_IMODE(secret.stat().st_mode) == 0o600
    login = f"admin:{secret.read_text().strip()}"
    for name in ("worker-1@", "worker-2@"):
        wait_for(lambda n=name: n in get(f"{url}/api/workers?refresh=1", login)[1], 20)  # type: ignore[misc]
    assert '"name": "drover"' in get(f"{url}/api/queues/length", login)[1]
    assert "flower_worker" in get(f"{url}/metrics", login)[1]


def test_secrets_are_neither_in_arguments_nor_in_children_that_do_not_need_them(
    shared: PrivateStack,
) -> None:
    pids = tree_of(shared.processes["up"].pid)
    secret = (shared.data / "flower.password").read_text().strip()
    assert "canary" not in commands(pids)
    assert secret not in commands(pids)
    assert not [pid for pid in pids if "canary" in str(environment_of(pid))]
    assert secret not in shared.log("up")
    assert "canary" not in shared.log("up")


def test_each_process_gets_only_the_variables_that_it_needs(shared: PrivateStack) -> None:
    found: dict[str, set[str]] = {}
    for pid in tree_of(shared.processes["up"].pid)[1:]:
        variables = environment_of(pid)
        found.setdefault(variables.get("DROVER_ROLE", "redis"), set()).update(variables)
    assert found.keys() == {"redis", "worker-1", "worker-2", "beat", "gateway", "flower"}
    # Celery writes the title of beat over its variables; test_environment.py checks those of beat.
    having = {
        name: {role for role, variables in found.items() if name in variables} - {"beat"}
        for name in ("HOOK_SECRET", "UNKNOWN_SECRET", "DROVER_CREDENTIAL_KEYS", "DATABASE_URL")
    }
    workers = {"worker-1", "worker-2"}
    assert having == {
        "HOOK_SECRET": {"gateway"},
        "UNKNOWN_SECRET": set(),
        "DROVER_CREDENTIAL_KEYS": {"gateway", *workers},
        "DATABASE_URL": {"gateway", *workers},
    }


def test_redis_asks_for_a_password_that_is_printed_nowhere(shared: PrivateStack) -> None:
    password = redis_password(shared.data)
    assert password
    pids = tree_of(shared.processes["up"].pid)
    assert password not in commands(pids)
    assert not [pid for pid in pids if password in str(environment_of(pid))]
    assert password not in shared.log("up")
    logs = "".join(path.read_text() for path in (shared.data / "logs").iterdir())
    assert password not in logs
    with pytest.raises(redis.AuthenticationError):
        redis.Redis(unix_socket_path=str(redis_socket_path(shared.data))).ping()


def test_other_users_may_read_nothing_of_an_installation_that_they_could_read_before(
    shared: PrivateStack,
) -> None:
    """Except the socket for runs, which other users' runs and containers write to."""
    assert "permissions of " in shared.log("up")
    paths = [shared.data, *shared.data.rglob("*")]
    found = {
        str(path): oct(path.lstat().st_mode)
        for path in paths
        if path.lstat().st_mode & 0o077 and shared.data / "gateway" not in (path, path.parent)
    }
    assert found == {}
    assert {shared.data / "drover.sqlite3-wal", shared.data / "logs" / "worker-1.log"} <= {*paths}


def test_a_second_up_names_the_process_that_uses_the_directory(shared: PrivateStack) -> None:
    second = shared.manage("up")
    assert second.returncode == 1
    assert second.stderr.startswith("drover: `manage.py up` already runs for ")
    assert f"as process {shared.processes['up'].pid} at {shared.url}. Stop it" in second.stderr
    assert len(second.stderr.splitlines()) == 1


def test_a_killed_gateway_is_restarted(shared: PrivateStack) -> None:
    pids = tree_of(shared.processes["up"].pid)
    (gateway,) = [pid for pid in pids if "gateway_app" in commands([pid])]
    os.kill(gateway, signal.SIGKILL)
    wait_for(lambda: "gateway was killed by SIGKILL; next start in 0.5 s" in shared.log("up"))
    wait_for(lambda: _answers(f"{shared.url}/healthz"), 15)
    assert is_gone(gateway)


@pytest.mark.parametrize("delay", [0, 0.2, 0.8])
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


def test_up_uses_a_configured_redis_and_never_prints_its_password(
    new_stack: NewStack, redis_server: RedisServer
) -> None:
    port = free_port()
    with redis_server.client() as client:
        client.config_set("port", port)
        client.config_set("requirepass", "canary-pass")
    stack = new_stack(redis_url=f"redis://:canary-pass@127.0.0.1:{port}/0")
    pids = tree_of(stack.up().pid)
    assert "redis-server" not in commands(pids)
    assert not (stack.data / "redis").exists()
    assert "canary" not in commands(pids)
    assert "canary" not in stack.log("up")
    stack.close()


def _answers(url: str) -> bool:
    try:
        return get(url)[0] == 200
    except OSError:
        return False
