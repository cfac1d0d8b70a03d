"""Parts of the container runner that need no engine: frames, environment, options."""

import subprocess
import sys
from pathlib import Path

import pytest

from agents_app.conf import ROOT
from agents_app.output.transcript import UnstoredOutputSink
from agents_app.runners.base import Mount, Outcome, RunControl, RunSpec, Runtime, verdict
from agents_app.runners.containers.engine import DockerClient
from agents_app.runners.containers.frames import Frames
from agents_app.runners.containers.options import environment, limits, options
from agents_app.runners.containers.runner import ContainerRunner
from tests.agents_app.runners.programs import Sink

WORKDIR = Path("/data/runs/7")


def frame(stream: int, data: bytes) -> bytes:
    return bytes([stream, 0, 0, 0]) + len(data).to_bytes(4, "big") + data


def spec(**env: str) -> RunSpec:
    runtime = Runtime("container", image="some/image:1")
    return RunSpec(
        7, ("run", "-x"), env, WORKDIR, WORKDIR / "prompt.md", 60, trace_id="t", runtime=runtime
    )


@pytest.mark.parametrize("size", [1, 2, 3, 7, 8, 9, 1000])
def test_frames_are_read_however_the_stream_is_split(size: int):
    data = frame(1, b"hello ") + frame(2, b"oh") + frame(1, b"") + frame(1, b"world")
    frames, found = Frames(), {1: b"", 2: b""}
    for start in range(0, len(data), size):
        for stream, piece in frames.feed(data[start : start + size]):
            found[stream] += piece
    assert found == {1: b"hello world", 2: b"oh"}


def test_bytes_read_before_are_skipped_in_each_stream():
    data = frame(1, b"hello ") + frame(2, b"oh no") + frame(1, b"world")
    assert list(Frames({1: 8, 2: 2}).feed(data)) == [(2, b" no"), (1, b"rld")]


def test_stored_output_does_not_reach_the_sink_again():
    sink = Sink()
    rest = UnstoredOutputSink(sink, {1: 7})
    for data in (b"hello", b" world", b"!"):
        rest.feed(1, data, 0.0)
    rest.feed(2, b"oh", 0.0)
    assert (sink.text(1), sink.text(2)) == (b"orld!", b"oh")


def test_the_path_of_the_image_follows_the_commands_of_agents():
    server = {"PATH": "/host/bin", "HOME": "/home/drover", "USER": "drover"}
    env = environment(spec(**server | {"PATH": "/agent_bin:/host/bin"}), server, {"PATH": "/i/bin"})
    assert env == {"PATH": "/agent_bin:/i/bin", "HOME": str(WORKDIR)}


def test_variables_of_the_agent_are_kept():
    server = {"PATH": "/host/bin", "HOME": "/home/drover"}
    declared = {"PATH": "/mine", "HOME": "/mine", "USER": "me"}
    assert environment(spec(**declared), server, {"PATH": "/i/bin"}) == declared


def test_a_missing_mount_is_left_out(tmp_path):
    mounts = (Mount(tmp_path, writable=True), Mount(tmp_path / "none"), Mount(ROOT))
    given = RunSpec(
        7, ("x",), {}, WORKDIR, WORKDIR, 60, runtime=Runtime("container"), mounts=mounts
    )
    found = [(m["Source"], m["Target"], m["ReadOnly"]) for m in limits(given)["mounts"]]
    assert found == [(str(tmp_path), str(tmp_path), False), (str(ROOT), str(ROOT), True)]


def test_the_images_own_entry_point_and_checks_are_not_run():
    found = options(spec(), {})
    assert (found["entrypoint"], found["command"]) == (["run"], ["-x"])
    assert found["healthcheck"] == {"test": ["NONE"]}


def test_an_unavailable_engine_and_a_missing_container_are_not_failures():
    assert verdict(Outcome("unavailable", None, "x")).state == "unavailable"
    assert verdict(Outcome("lost", None, "x")).state == "lost"
    assert verdict(Outcome("exited", 137, "oom_killed: x")).error == "oom_killed: x"
    assert verdict(Outcome("exited", 0, "")).state == "succeeded"


def test_without_containers_the_docker_sdk_is_not_loaded(tmp_path):
    """It costs 20 MB; the stack has a budget for doing nothing."""
    code = "import django; django.setup(); import sys; import scheduler_project.worker;"
    code += "import scheduler_project.beat; assert 'docker' not in sys.modules"
    env = {"DROVER_DATA": str(tmp_path), "DJANGO_SETTINGS_MODULE": "scheduler_project.settings"}
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, env=env, capture_output=True)
    assert done.returncode == 0, done.stderr.decode()[-2000:]


def test_an_engine_that_is_away_is_named_by_its_address(tmp_path: Path):
    address = f"unix://{tmp_path}/no.sock"
    outcome = ContainerRunner(DockerClient(address)).run(spec(), RunControl(), Sink())
    error = f"docker_unavailable: Docker is not reachable at {address}"
    assert outcome == Outcome("unavailable", None, error)
