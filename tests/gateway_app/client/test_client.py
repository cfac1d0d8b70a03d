"""The generated client, installed from its wheel, on a real gateway."""

import asyncio
import importlib
import json
import os
import subprocess
import sys
import zipfile
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from tests.docs.pages import samples
from tests.gateway_app.api.live import LiveServer, serve
from tests.gateway_app.client.generate import DOCUMENT, PACKAGE, build_client
from tests.parts.fixtures import NewStack, made_once

pytestmark = pytest.mark.slow


@pytest.fixture(scope="session")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Built once for all processes of the session."""

    def build(path: Path) -> None:
        build_client(path)

    (built,) = made_once(tmp_path_factory, "client.wheel", build).iterdir()
    return built


@pytest.fixture(scope="module")
def installed(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[ModuleType]:
    directory = tmp_path_factory.mktemp("installed")
    with zipfile.ZipFile(wheel) as archive:
        archive.extractall(directory)
    sys.path.insert(0, str(directory))
    yield importlib.import_module(PACKAGE)
    sys.path.remove(str(directory))


@pytest.fixture(scope="module")
def server(new_shared_stack: NewStack) -> LiveServer:
    return serve(new_shared_stack)


@pytest.fixture
def client(installed: ModuleType, server: LiveServer) -> Any:
    return installed.AuthenticatedClient(base_url=server.stack.url, token=server.token)


def operation(tag: str, name: str) -> Any:
    return importlib.import_module(f"{PACKAGE}.api.{tag}.{name}")


def model(name: str) -> Any:
    return getattr(importlib.import_module(f"{PACKAGE}.models"), name)


def test_the_wheel_is_typed_and_has_every_operation(wheel: Path, installed: ModuleType):
    names = set(zipfile.ZipFile(wheel).namelist())
    assert f"{PACKAGE}/py.typed" in names
    paths = json.loads(DOCUMENT.read_text())["paths"]
    missing = [
        at
        for methods in paths.values()
        for described in methods.values()
        if (at := f"{PACKAGE}/api/{described['tags'][0]}/{described['operationId']}.py")
        not in names
    ]
    assert missing == []


def test_the_synchronous_client_returns_typed_values(client: Any):
    agents = operation("agents", "list_agents").sync(client=client)
    assert [agent.name for agent in agents.agents] == ["hello"]
    asked = operation("agents", "run_agent").sync_detailed(
        "hello", client=client, body=model("RunAgentRequest")(prompt="Say it.")
    )
    assert asked.status_code == 202
    assert asked.parsed.agent == "hello"
    shown = operation("queue", "show_work").sync(asked.parsed.work_item_id, client=client)
    assert shown.id == asked.parsed.work_item_id


def test_the_asynchronous_client_returns_typed_values(client: Any):
    async def ask() -> tuple[Any, Any]:
        async with client as session:
            return await asyncio.gather(
                operation("scheduler", "show_scheduler").asyncio(client=session),
                operation("schedules", "list_schedules").asyncio(client=session),
            )

    scheduler, schedules = asyncio.run(ask())
    assert scheduler.state in {"running", "stopped"}
    assert schedules.schedules == []


def test_a_request_without_its_optional_body_is_accepted(client: Any):
    paused = operation("agents", "pause_agent").sync_detailed("hello", client=client)
    assert (paused.status_code, paused.parsed.name) == (200, "hello")
    assert operation("agents", "resume_agent").sync_detailed("hello", client=client).parsed


def test_the_program_of_the_guide_lists_and_runs_agents(installed: ModuleType, server: LiveServer):
    (sample,) = (each for each in samples("python") if PACKAGE in each.text)
    assert installed.__file__
    done = subprocess.run(
        [sys.executable, "-c", sample.text],
        env={
            "PYTHONPATH": os.pathsep.join([str(Path(installed.__file__).parents[1]), *sys.path]),
            "DROVER_URL": server.stack.url,
            "DROVER_TOKEN": server.token,
        },
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout == "hello 202\nnot_found there is no such agent\n"


def test_an_error_of_the_api_is_a_typed_value(client: Any, installed: ModuleType):
    answer = operation("agents", "show_agent").sync_detailed("nothing", client=client)
    assert (answer.status_code, answer.parsed.error.code) == (404, "not_found")
    stranger = installed.AuthenticatedClient(base_url=client._base_url, token="wrong")
    refused = operation("agents", "list_agents").sync_detailed(client=stranger)
    assert (refused.status_code, refused.parsed.error.code) == (401, "unauthorized")
