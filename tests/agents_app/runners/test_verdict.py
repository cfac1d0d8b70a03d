"""The state and the error that follow from the outcome of a program."""

import errno
import signal
from pathlib import Path

import pytest

from agents_app.runners.base import Outcome, RunSpec, Verdict, spawn_error, verdict

SPEC = RunSpec(1, ("tool", "-x"), {"TOKEN": "s3cret"}, Path("/work"), Path("/p"), 1)


def test_exit_0_succeeds():
    assert verdict(Outcome("exited", 0)) == Verdict("succeeded")


def test_exit_42_succeeds_and_asks_for_a_rerun():
    assert verdict(Outcome("exited", 42)) == Verdict("succeeded", wants_rerun=True)


def test_exit_124_is_a_timeout():
    assert verdict(Outcome("exited", 124)).state == "timed_out"


@pytest.mark.parametrize(
    ("code", "name"),
    [
        (10, "auth failure"),
        (11, "permission denied"),
        (12, "rate limited"),
        (13, "invalid config"),
        (14, "dependency error"),
        (15, "unrecoverable"),
        (16, "user abort"),
    ],
)
def test_exits_10_to_16_fail_with_a_name(code, name):
    assert verdict(Outcome("exited", code)) == Verdict("failed", f"{name} (exit code {code})")


@pytest.mark.parametrize("code", [1, 2, 9, 17, 41, 43, 123, 125, 127, 128, 255])
def test_any_other_exit_fails_with_its_number(code):
    assert verdict(Outcome("exited", code)) == Verdict("failed", f"exit code {code}")


def test_a_fatal_signal_is_named():
    segv = verdict(Outcome("exited", -signal.SIGSEGV))
    assert segv == Verdict("failed", "killed by SIGSEGV")


def test_a_signal_without_a_name_has_its_number():
    assert verdict(Outcome("exited", -200)).error == "killed by signal 200"


def test_a_shells_report_of_a_signal_is_explained():
    assert "killed by SIGKILL" in verdict(Outcome("exited", 137)).error


def test_a_kill_that_drover_did_not_send_mentions_the_oom_killer():
    killed = verdict(Outcome("exited", -9))
    assert killed.state == "failed"
    assert "oom_killed" in killed.error
    assert "SIGKILL" in killed.error
    assert "OOM killer" in killed.error


@pytest.mark.parametrize("kind", ["stopped", "timed_out"])
@pytest.mark.parametrize("code", [0, 42, -15, -9, None])
def test_a_stopped_program_keeps_the_reason_whatever_its_exit_code(kind, code):
    assert verdict(Outcome(kind, code, "because")) == Verdict(kind, "because")


def test_a_program_that_did_not_start_fails_with_the_code_spawn_failed():
    failed = verdict(Outcome("spawn_failed", None, "ENOENT: gone"))
    assert failed == Verdict("failed", "spawn_failed: ENOENT: gone")


@pytest.mark.parametrize(
    ("error", "words"),
    [
        (FileNotFoundError(errno.ENOENT, "", "tool"), ["ENOENT", "'tool'", "install it"]),
        (PermissionError(errno.EACCES, "", "tool"), ["EACCES", "chmod"]),
        (OSError(errno.ENOEXEC, "", "tool"), ["ENOEXEC", "#!"]),
        (FileNotFoundError(errno.ENOENT, "", Path("/work")), ["working directory /work"]),
        (FileNotFoundError(errno.ENOENT, "", "/p"), ["prompt file /p"]),
        (BlockingIOError(errno.EAGAIN, ""), ["EAGAIN", "process limit"]),
        (OSError(errno.EIO, ""), ["EIO", "Input/output error"]),
        (ValueError("embedded null byte"), ["EINVAL", "embedded null byte"]),
    ],
)
def test_a_failed_start_says_errno_and_what_to_do_but_no_secret(error, words):
    message = spawn_error(SPEC, error)
    assert all(word in message for word in words), message
    assert "s3cret" not in message
