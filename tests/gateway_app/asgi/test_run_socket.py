"""The gateway on a port and on the socket of runs, which serves only signals and health."""

import http.client
import json
import os
import socket
import stat
import subprocess
from pathlib import Path
from typing import Any

import pytest

from agents_app.agent_bin.http_post import UnixConnection
from agents_app.errors import ConfigError
from agents_app.installation.gateway_socket import gateway_socket_path, socket_directory
from agents_app.launch.prepare import AGENT_BIN
from tests.parts.fixtures import NewStack
from tests.parts.ports import free_port
from tests.parts.stack_part import PrivateStack
from tests.parts.waiting import wait_for

NO_REDIS = "redis://127.0.0.1:1/0"


@pytest.fixture(scope="module")
def installation(new_shared_stack: NewStack) -> PrivateStack:
    return new_shared_stack(redis_url=NO_REDIS)


@pytest.fixture
def stack(installation: PrivateStack) -> PrivateStack:
    """One gateway for all tests, started again after a test that ended it."""
    if "gateway" not in installation.processes:
        installation.start("gateway")
    return installation


def request(
    connection: http.client.HTTPConnection, path: str, method: str = "GET"
) -> tuple[int, Any]:
    connection.request(method, path)
    answer = connection.getresponse()
    body = answer.read()
    connection.close()
    is_json = answer.headers.get_content_type() == "application/json"
    return answer.status, json.loads(body) if is_json else body


def through_socket(data: Path, path: str = "/healthz", method: str = "GET") -> tuple[int, Any]:
    return request(UnixConnection(str(gateway_socket_path(data)), 10), path, method)


def through_port(port: int, path: str = "/healthz") -> tuple[int, Any]:
    return request(http.client.HTTPConnection("127.0.0.1", port, timeout=10), path)


def test_the_port_and_the_socket_are_served_and_every_user_can_use_the_socket(
    stack: PrivateStack,
) -> None:
    assert through_port(stack.conf.port) == (200, {"ok": True})
    assert through_socket(stack.data) == (200, {"ok": True})
    path = gateway_socket_path(stack.data)
    assert stat.S_IMODE(path.stat().st_mode) == 0o666
    assert stat.S_IMODE(path.parent.stat().st_mode) == 0o711
    # The whole directory is mounted in containers.
    assert [entry.name for entry in path.parent.iterdir()] == ["gateway.sock"]


def test_the_socket_serves_signals_and_the_health_check_only(stack: PrivateStack) -> None:
    """Guard: the dashboard, the API and webhooks are not for runs; RunSocketApp refuses them."""
    message = "this socket is for runs: /v1/signals/* and /healthz"
    refusal = {"error": {"code": "not_found", "message": message}}
    for path in ("/", "/admin/login/", "/v1/agents", "/readyz", "/v1/signals", "/healthz/x"):
        assert through_socket(stack.data, path) == (404, refusal), path
    assert through_socket(stack.data, "/webhooks/github", "POST") == (404, refusal)
    status, content = through_socket(stack.data, "/v1/signals/nonsense", "POST")
    assert status == 401
    assert content != refusal
    assert through_port(stack.conf.port, "/admin/login/")[0] == 200
    assert through_port(stack.conf.port, "/v1/agents")[0] == 401


def test_the_command_of_an_agent_reaches_the_gateway_through_the_socket(
    stack: PrivateStack,
) -> None:
    env = {
        "PATH": os.environ["PATH"],
        "DROVER_GATEWAY_SOCKET": str(gateway_socket_path(stack.data)),
    }
    argv = [AGENT_BIN / "drover", "rerun"]
    done = subprocess.run(argv, env=env, capture_output=True, check=False)
    # Without the token of a run, the signal is refused.
    assert done.returncode == 3
    assert json.loads(done.stdout)["error"]["message"]
    assert done.stderr == b""


def test_the_socket_of_a_killed_gateway_is_replaced_by_the_next_one(stack: PrivateStack) -> None:
    """Guard: without the unlink the next bind fails, and runs without a network send no signals."""
    stack.kill("gateway")
    assert gateway_socket_path(stack.data).exists()
    with pytest.raises(ConnectionRefusedError):
        through_socket(stack.data)
    stack.start("gateway")
    assert through_socket(stack.data)[0] == 200


def test_a_second_gateway_does_not_take_the_socket_of_the_first(stack: PrivateStack) -> None:
    """Guard: without the lock the second gateway replaces the socket and removes it at its end."""
    inode = gateway_socket_path(stack.data).stat().st_ino
    first, first_port = stack.processes.pop("gateway"), stack.env["DROVER_PORT"]
    stack.processes["first"], stack.env["DROVER_PORT"] = first, str(free_port())
    stack.start("gateway")
    assert through_port(stack.conf.port)[0] == 200
    assert "gateway.socket_taken" in stack.log("gateway")
    stack.stop("gateway")
    assert gateway_socket_path(stack.data).stat().st_ino == inode
    assert through_socket(stack.data)[0] == 200
    stack.processes["gateway"], stack.env["DROVER_PORT"] = stack.processes.pop("first"), first_port


def test_a_gateway_whose_port_is_in_use_does_not_replace_the_socket(stack: PrivateStack) -> None:
    inode = gateway_socket_path(stack.data).stat().st_ino
    role = stack._role("gateway")
    second = stack._spawn("second", role.argv, dict(role.env))
    assert second.wait(20) != 0
    assert gateway_socket_path(stack.data).stat().st_ino == inode
    assert through_socket(stack.data)[0] == 200


def test_a_stopped_gateway_removes_its_socket(stack: PrivateStack) -> None:
    stack.stop("gateway")
    assert not gateway_socket_path(stack.data).exists()


def test_the_socket_of_a_long_data_directory_is_in_another_directory(tmp_path: Path) -> None:
    data = tmp_path / ("long-" * 30)
    path = gateway_socket_path(data)
    assert len(os.fsencode(path)) <= 107
    assert path.parent != data / "gateway"
    assert path == gateway_socket_path(data) != gateway_socket_path(tmp_path / ("long-" * 31))
    directory = socket_directory(data)
    try:
        with socket.socket(socket.AF_UNIX) as listener:
            listener.bind(str(path))
        path.unlink()
    finally:
        directory.rmdir()


def test_a_socket_directory_that_is_a_symlink_is_refused(tmp_path: Path) -> None:
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "gateway").symlink_to(tmp_path / "elsewhere")
    with pytest.raises(ConfigError, match="belongs to this user"):
        socket_directory(tmp_path)


def test_port_is_enough(new_stack: NewStack) -> None:
    """A gateway without a socket serves its port. The name of the test is part of its directory,
    and the gateway has its socket elsewhere if the path is long."""
    stack = new_stack(redis_url=NO_REDIS)
    (stack.data / "gateway").write_text("in the way")
    stack.start("gateway")
    assert through_port(stack.conf.port)[0] == 200
    wait_for(lambda: "gateway.socket_failed" in stack.log("gateway"))
