"""The commands of agents in several shells, with curl or python3, and few other programs."""

import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import product
from pathlib import Path

import pytest

from agents_app.launch.prepare import AGENT_BIN
from tests.agents_app.agent_bin.recorder import Recorder, serve
from tests.parts.missing import missing

TOKEN = "drover_run_7_a-Secret_0123456789"
SHELLS = {"dash": ["dash"], "bash": ["bash", "--posix"], "busybox": ["busybox", "sh"]}


def tool(name: str) -> str:
    if name == "python3":
        return sys.executable
    return shutil.which(name) or missing(name, f"apt install {name}")


@dataclass
class Caller:
    """An agent's shell with a PATH that has next to nothing on it."""

    tools: Path
    cwd: Path
    shell: list[str]
    env: dict[str, str] = field(default_factory=dict)

    def __call__(
        self, *words: str | bytes, stdin: bytes | None = None, **env: str | None
    ) -> subprocess.CompletedProcess[bytes]:
        return subprocess.run(
            self.argv(*words),
            input=stdin,
            stdin=subprocess.DEVNULL if stdin is None else None,
            capture_output=True,
            cwd=self.cwd,
            env=self.environment(**env),
            timeout=60,
            check=False,
        )

    def argv(self, name: str | bytes, *words: str | bytes) -> list[str | bytes]:
        return [*self.shell, str(AGENT_BIN / os.fsdecode(name)), *words]

    def environment(self, **env: str | None) -> dict[str, str]:
        merged = {"PATH": str(self.tools), **self.env, **env}
        return {name: value for name, value in merged.items() if value is not None}


def caller_with(tmp_path: Path, shell: str, client: str) -> Caller:
    tools, cwd = tmp_path / f"tools-{client}", tmp_path / "cwd"
    tools.mkdir()
    cwd.mkdir(exist_ok=True)
    for name in ("cat", "date", "sleep", *([client] if client else [])):
        (tools / name).symlink_to(tool(name))
    program, *options = SHELLS[shell]
    return Caller(tools, cwd, [tool(program), *options])


@pytest.fixture
def gateway() -> Iterator[Recorder]:
    recorder = Recorder()
    server = serve(recorder)
    recorder.url = f"http://127.0.0.1:{server.server_address[1]}"  # type: ignore[index]
    yield recorder
    server.shutdown()
    server.server_close()


@pytest.fixture(params=[("dash", "curl"), ("busybox", "python3")], ids=" ".join)
def drover(request: pytest.FixtureRequest, tmp_path: Path, gateway: Recorder) -> Caller:
    """Both clients, on a gateway that is there; each in another shell, because calls take time."""
    return connected(caller_with(tmp_path, *request.param), gateway)


@pytest.fixture(params=list(product(SHELLS, ["curl", "python3"])), ids=" ".join)
def anywhere(request: pytest.FixtureRequest, tmp_path: Path, gateway: Recorder) -> Caller:
    """Every shell with every client."""
    return connected(caller_with(tmp_path, *request.param), gateway)


@pytest.fixture
def plain(tmp_path: Path, gateway: Recorder) -> Caller:
    """dash and curl, the usual pair."""
    return connected(caller_with(tmp_path, "dash", "curl"), gateway)


def connected(caller: Caller, gateway: Recorder) -> Caller:
    caller.env = {
        "DROVER_GATEWAY_URL": gateway.url,
        "DROVER_RUN_TOKEN": TOKEN,
        "DROVER_RETRIES": "0",
    }
    return caller
