"""Programs in containers: input, output, endings and errors."""

import os
import time

import pytest

from agents_app.runners.base import Mount, verdict
from agents_app.runners.containers.engine import DockerClient
from tests.agents_app.runners.conftest import open_fds
from tests.agents_app.runners.containers import NewContained
from tests.parts.docker_part import IMAGE, DockerEngine
from tests.parts.ports import free_port
from tests.parts.waiting import wait_for


def test_a_program_gets_its_prompt_and_its_output_is_kept_in_order(contained: NewContained):
    run = contained('cat; echo; echo "to $DROVER_RUN_ID"; echo oh >&2; sleep 0.2; echo end').run()
    assert run.outcome.kind == "exited" and run.outcome.exit_code == 0
    assert run.sink.text(1) == f"hello\nto {run.run_id}\nend\n".encode()
    assert run.sink.text(2) == b"oh\n"
    assert [s.stream for s in run.sink.segments][-1] == 1


def test_the_first_line_of_a_program_that_ends_at_once_is_there(contained: NewContained):
    runs = [contained(f"echo line {number}").run() for number in range(5)]
    assert [run.sink.text() for run in runs] == [b"line %d\n" % number for number in range(5)]


def test_the_exit_code_is_that_of_the_program(contained: NewContained):
    assert contained("exit 42").run().outcome.exit_code == 42
    run = contained("exit 11").run()
    assert verdict(run.outcome).error == "permission denied (exit code 11)"


def test_a_container_runs_in_its_workdir_with_the_prompt_in_a_file(contained: NewContained):
    run = contained("pwd; cat prompt; echo kept > note; echo $HOME").run()
    assert run.sink.text(1).decode().split() == [str(run.cwd), "hello" + str(run.cwd)]
    assert (run.cwd / "note").read_text() == "kept\n"


def test_a_read_only_directory_can_be_read_and_no_more(contained: NewContained, tmp_path):
    skill = tmp_path / "agent"
    skill.mkdir()
    (skill / "note").write_text("read me\n")
    run = contained(f"cat {skill}/note; echo x > {skill}/new", mounts=(Mount(skill),)).run()
    assert run.sink.text(1) == b"read me\n"
    assert b"Read-only file system" in run.sink.text(2)
    assert os.listdir(skill) == ["note"]


def test_programs_are_found_where_the_image_has_them(contained: NewContained):
    run = contained("echo $PATH")
    commands = str(run.cwd / "bin")
    run.env["PATH"] = f"{commands}:{os.environ['PATH']}"
    assert run.run().outcome.exit_code == 0


def test_a_huge_prompt_that_is_never_read_does_not_block(contained: NewContained):
    run = contained("echo done")
    run.spec.prompt_file.write_bytes(b"x" * 50_000_000)
    run.run()
    assert run.outcome.exit_code == 0
    assert run.sink.text(1) == b"done\n"


def test_a_huge_prompt_arrives_to_the_last_byte(contained: NewContained):
    run = contained("wc -c")
    run.spec.prompt_file.write_bytes(b"x" * 5_000_000)
    assert run.run().sink.text(1).strip() == b"5000000"


def test_after_a_timeout_a_container_gets_sigterm_then_sigkill(contained: NewContained):
    """F30: it ignores TERM."""
    run = contained(
        "trap 'echo no' TERM; echo ready; while :; do sleep 0.1; done", timeout=1, grace=1
    )
    run.run()
    assert run.outcome.kind == "timed_out"
    assert run.outcome.error == "timed out after 1 s"
    assert run.sink.text(1) == b"ready\nno\n"
    assert run.took_seconds < 1 + 1 + 2


def test_a_program_that_ends_on_sigterm_can_write_output(contained: NewContained):
    run = contained("trap 'echo bye; exit 0' TERM; echo ready; while :; do sleep 0.1; done")
    run.start()
    run.container()
    wait_for(lambda: run.sink.segments)
    run.control.stop("enough")
    run.join()
    assert (run.outcome.kind, run.outcome.error) == ("stopped", "enough")
    assert run.sink.text(1) == b"ready\nbye\n"


def test_a_stop_before_the_start_begins_no_container(contained: NewContained):
    run = contained("echo never")
    run.control.stop("not wanted")
    assert run.run().outcome.kind == "stopped"
    assert run.sink.text() == b""


@pytest.mark.fault("F36")
def test_a_program_that_closes_its_output_is_not_over_before_it_ends(contained: NewContained):
    """F36: the end of the output is not the end of the run."""
    run = contained("exec >&- 2>&-; sleep 2; exit 7").run()
    assert run.outcome.exit_code == 7
    assert run.took_seconds > 1.9


@pytest.mark.fault("F31", "F37")
def test_background_processes_end_with_the_container(contained: NewContained):
    """F31, F37: the container is gone, whatever it has started."""
    run = contained("sleep 300 & setsid sleep 300 & echo on").run()
    assert run.outcome.exit_code == 0
    assert run.took_seconds < 5


@pytest.mark.fault("F39")
def test_running_out_of_memory_is_reported(contained: NewContained):
    """F39."""
    run = contained("x=a; while :; do x=$x$x; done", memory="16m").run()
    judged = verdict(run.outcome)
    assert judged.state == "failed"
    assert judged.error.startswith("oom_killed: the run needed more than its 16m of memory")


@pytest.mark.fault("F42")
def test_a_missing_image_is_named_and_not_pulled(contained: NewContained):
    """F42."""
    began = time.monotonic()
    run = contained("echo never", image="example/nowhere:9").run()
    judged = verdict(run.outcome)
    assert judged.state == "failed"
    assert judged.error.startswith("image_missing: 'example/nowhere:9' is not on this machine")
    assert "docker pull example/nowhere:9" in judged.error
    assert time.monotonic() - began < 2


@pytest.mark.fault("F42")
def test_an_image_that_cannot_be_pulled_is_named_with_the_reason(contained: NewContained):
    """A registry on this machine where none is."""
    image = f"127.0.0.1:{free_port()}/nowhere:9"
    error = verdict(contained("echo never", image=image, pull="missing").run().outcome).error
    assert error.startswith(f"image_missing: '{image}' is not on this machine; it could not be")
    assert "connection refused" in error


def test_without_an_image_the_error_says_where_to_name_one(contained: NewContained):
    error = verdict(contained("echo never", image="").run().outcome).error
    assert "runtime.image" in error


@pytest.mark.parametrize("network", ["host", "container:other"])
def test_the_host_network_is_refused(contained: NewContained, network: str):
    error = verdict(contained("echo never", network=network).run().outcome).error
    assert error.startswith("spawn_failed: runtime.network is")


def test_a_missing_network_is_named(contained: NewContained):
    error = verdict(contained("echo never", network="nowhere").run().outcome).error
    assert error.startswith("spawn_failed: ") and "nowhere" in error


def test_a_program_missing_in_the_image_is_named(contained: NewContained):
    run = contained("", argv=("nosuchprogram", "-x")).run()
    judged = verdict(run.outcome)
    assert judged.state == "failed"
    assert "nosuchprogram" in judged.error + run.sink.text(2).decode()


def test_no_descriptor_of_a_run_is_left(contained: NewContained, docker_engine: DockerEngine):
    """The SDK keeps up to 25 connections, one for each address: so all to one."""
    engine = DockerClient(docker_engine.url)
    made = docker_engine.client().create_container(IMAGE, ["true"], stdin_open=True)["Id"]
    engine.attach(made).close()
    before = open_fds()
    for _ in range(10):
        engine.attach(made).close()
    assert len(open_fds()) <= len(before)
    engine.remove(made)
    run = contained("exec >&-; sleep 0.3").run()
    left = {
        link
        for fd in open_fds() - before
        if not (link := fd.partition(":")[2]).startswith("socket")
    }
    assert left == set()
    run.remove_kept()
    assert run.left() == []
