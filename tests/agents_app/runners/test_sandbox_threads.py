"""The threads of sandboxes: made before runs need them, ended with their runs."""

import os

import pytest

from agents_app.runners import sandbox
from agents_app.runners.sandbox import SPARE_THREADS, Kernel, SpareThreads
from tests.agents_app.runners.programs import SYSTEM_ONLY, Program
from tests.parts.waiting import wait_for


def test_the_thread_of_a_sandbox_ends_with_its_run(tmp_path):
    """Threads are kept for later runs, but no more than SPARE_THREADS."""
    Program(tmp_path, "/bin/true", sandbox=SYSTEM_ONLY).run()
    most = len(os.listdir("/proc/self/task")) + SPARE_THREADS
    for _ in range(SPARE_THREADS):
        Program(tmp_path, "/bin/true", sandbox=SYSTEM_ONLY).run()
        Program(tmp_path, "/no/such/program", sandbox=SYSTEM_ONLY).run()
    wait_for(lambda: len(os.listdir("/proc/self/task")) <= most)


def test_a_thread_that_cannot_start_fails_the_run_as_a_process_does(tmp_path, no_new_threads):
    sandbox.spare_threads.cache_clear()
    outcome = Program(tmp_path, "/bin/true", sandbox=SYSTEM_ONLY).run().outcome
    assert outcome.error.startswith("EAGAIN: '/bin/true' could not start: the process limit")


def test_a_thread_that_could_not_be_made_in_advance_fails_no_later_run(request):
    spare = SpareThreads(Kernel(0, False), drop_capabilities=False)
    spare.take().close()
    refused = request.getfixturevalue("no_new_threads")
    spare.refill()
    with pytest.raises(OSError, match="unavailable"):
        spare.take()
    refused.undo()
    spare.take().close()


@pytest.fixture
def no_new_threads(monkeypatch):
    def refuse(*_: object) -> None:
        raise RuntimeError("can't start new thread")

    monkeypatch.setattr(sandbox._thread, "start_new_thread", refuse)
    return monkeypatch
