"""Signals that a run leaves in files: read once at its end; links are not followed."""

import os
from pathlib import Path

import pytest

from agents_app.launch.workdir import signal_directory
from agents_app.models import Run, Trigger
from agents_app.signals.files import MAX_FILE_BYTES, take_signal_files
from agents_app.text import CUT
from agents_app.worker import execute
from agents_app.worker.execute import Host
from tests.agents_app.executing import do, shell
from tests.agents_app.fleet import Fleet, run_states


def ended(fleet: Fleet, host: Host, script: str, **request: object) -> Run:
    agent = fleet.agent(command=shell(f'cd "$AL_SIGNAL_DIR" && {script}'))
    return do(fleet, host, agent, **request)


def test_signal_files_are_stored_in_the_row_of_the_run(fleet: Fleet, host: Host):
    run = ended(fleet, host, "printf 'wörk' >status; printf 'the\n\"result\"' >return")
    assert (run.state, run.status_text) == ("succeeded", "wörk")
    assert (run.return_value, run.result_summary) == ('the\n"result"', 'the\n"result"')
    assert run.signaled_at is not None
    assert not os.path.exists(signal_directory(run.pk))


def test_a_run_that_wrote_nothing_has_not_signaled(fleet: Fleet, host: Host):
    run = ended(fleet, host, "touch something-else")
    assert (run.state, run.signaled_at) == ("succeeded", None)


def test_an_exit_file_overrides_a_success(fleet: Fleet, host: Host):
    run = ended(fleet, host, "printf 12 >exit; touch rerun")
    assert (run.state, run.error) == ("failed", "rate limited (exit code 12)")
    assert (run.exit_signal, run.rerun_requested) == (12, True)


@pytest.mark.parametrize("code", ["", "x", "-1", "999", "1 2"])
def test_an_exit_file_with_an_invalid_code_means_unrecoverable(fleet: Fleet, host: Host, code: str):
    run = ended(fleet, host, f"printf '%s' '{code}' >exit")
    assert (run.state, run.exit_signal) == ("failed", 15)


def test_a_rerun_starts_the_next_run_at_once(fleet: Fleet, host: Host):
    script = '[ -e "$DROVER_STATE_DIR/once" ] || { touch "$DROVER_STATE_DIR/once" rerun; }'
    agent = fleet.agent(command=shell(f'cd "$AL_SIGNAL_DIR" && {script}'))
    fleet.fire(fleet.schedule(agent))
    assert execute.execute(agent.runs.get().pk, host) == 2
    assert run_states(agent) == ["succeeded", "succeeded"]
    assert list(agent.runs.order_by("id").values_list("rerun", flat=True)) == [0, 1]


def test_only_a_scheduled_run_is_repeated_by_a_rerun_file(fleet: Fleet, host: Host):
    run = ended(fleet, host, "touch rerun", trigger=Trigger.MANUAL)
    assert run_states(run.agent) == ["succeeded"]


def test_a_failed_run_keeps_its_result(fleet: Fleet, host: Host):
    run = ended(fleet, host, "printf half >return; exit 3")
    assert (run.state, run.exit_code, run.return_value) == ("failed", 3, "half")


def test_the_drover_command_writes_signal_files_without_a_gateway(fleet: Fleet, host: Host):
    script = "unset DROVER_GATEWAY_URL GATEWAY_URL DROVER_GATEWAY_SOCKET; al-return 'x \"y\"'"
    assert ended(fleet, host, script).return_value == 'x "y"'


# --- what a run might try -------------------------------------------------------------------


def test_a_signal_file_that_is_a_link_is_not_followed(tmp_path: Path):
    """Guard: the worker may read more files than the run. If links are followed, secrets leak."""
    (tmp_path / "secret").write_text("canary")
    signals = tmp_path / "signals"
    signals.mkdir()
    (signals / "return").symlink_to(tmp_path / "secret")
    # Of another file: one with two names is not read in any case.
    (tmp_path / "another").write_text("canary")
    os.link(tmp_path / "another", signals / "status")
    assert take_signal_files(str(signals)) == {"return": "", "status": ""}
    (tmp_path / "other").symlink_to(signals)
    assert take_signal_files(str(tmp_path / "other")) is None


def test_a_signal_file_that_is_a_pipe_or_directory_is_not_read(tmp_path: Path):
    os.mkfifo(tmp_path / "return")
    (tmp_path / "exit").mkdir()
    (tmp_path / "something-else").write_text("x")
    assert take_signal_files(str(tmp_path)) == {"return": "", "exit": ""}


def test_an_endless_signal_file_is_truncated_and_bytes_become_text(tmp_path: Path):
    (tmp_path / "return").write_bytes(b"a" * (MAX_FILE_BYTES + 5))
    (tmp_path / "status").write_bytes(b"\xff\0ok")
    said = take_signal_files(str(tmp_path))
    assert said is not None
    assert len(said["return"]) == MAX_FILE_BYTES
    assert said["status"] == "\ufffdok"


def test_a_missing_signal_directory_means_no_signals(fleet: Fleet, host: Host):
    run = ended(fleet, host, 'rmdir "$AL_SIGNAL_DIR"')
    assert (run.state, run.signaled_at) == ("succeeded", None)


def test_a_summary_is_cut_between_characters(fleet: Fleet, host: Host):
    run = ended(fleet, host, "yes ß | head -c 9000 | tr -d '\\n' >return")
    assert len(run.result_summary.removesuffix(CUT).encode()) in {4095, 4096}
    assert len(run.return_value) == 3000
