"""RunControl, with which other threads stop a run."""

import os
import threading
import time

from agents_app.runners.base import RunControl, StopCommand
from tests.agents_app.runners.conftest import open_fds


def test_a_control_holds_no_descriptor_of_its_own():
    before = open_fds()
    controls = [RunControl() for _ in range(100)]
    for control in controls:
        control.stop("never ran")
    assert open_fds() == before


def test_a_stop_before_the_start_is_kept_and_wakes_the_runner_at_once():
    control = RunControl()
    control.stop("too late")
    fd = control.open()
    assert os.read(fd, 8)
    assert control.request == StopCommand("too late")
    control.close()


def test_a_stop_after_the_end_touches_no_descriptor():
    control = RunControl()
    fd = control.open()
    control.close()
    reader, writer = os.pipe()  # one of them is likely to get the number just freed
    control.stop("late")
    os.set_blocking(reader, False)
    assert fd in (reader, writer)
    os.close(writer)
    assert os.read(reader, 8) == b""
    os.close(reader)


def test_the_first_reason_stays_and_the_last_grace_counts():
    control = RunControl()
    control.stop("a person asked")
    control.stop("the lease is gone", grace_seconds=0)
    assert control.request == StopCommand("a person asked", 0)


def test_control_works_without_eventfd(monkeypatch):
    monkeypatch.delattr(os, "eventfd")
    before = open_fds()
    control = RunControl()
    control.open()
    control.stop("now")
    assert control.take() == StopCommand("now")
    control.close()
    assert open_fds() == before


def test_stop_and_close_may_race():
    for _ in range(200):
        control = RunControl()
        control.open()
        stopper = threading.Thread(target=control.stop, args=("race",))
        stopper.start()
        control.close()
        stopper.join()
        assert control.request is not None


def test_opening_and_closing_is_cheap():
    control = RunControl()
    began = time.perf_counter()
    for _ in range(1000):
        control.open()
        control.close()
    assert time.perf_counter() - began < 0.5
