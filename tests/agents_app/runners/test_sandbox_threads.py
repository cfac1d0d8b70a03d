"""The threads of sandboxes: made before runs need them, ended with their runs."""

import os

import pytest

from agents_app.runners import restrict, sandbox
from agents_app.runners.sandbox import (
    SHARED_RULES,
    SPARE_THREADS,
    Kernel,
    SharedRules,
    SpareThreads,
    this_kernel,
)
from tests.agents_app.runners.programs import SYSTEM_ONLY, Program
from tests.parts.waiting import wait_for

pytestmark = pytest.mark.usefixtures("landlock")


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
    rules = SharedRules((), (), 0)
    spare.take().close()
    refused = request.getfixturevalue("no_new_threads")
    spare.refill(rules)
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


def test_a_ruleset_made_in_advance_opens_the_directory_of_one_run_alone(tmp_path):
    SHARED_RULES.of(SYSTEM_ONLY.read, SYSTEM_ONLY.write, this_kernel().landlock).prepare()
    first = Program(tmp_path, "/bin/sh", "-c", "echo 1 > own", sandbox=SYSTEM_ONLY).run()
    assert first.note("own") == "1"
    SHARED_RULES.of(SYSTEM_ONLY.read, SYSTEM_ONLY.write, this_kernel().landlock).prepare()
    script = f"echo 2 > {first.cwd}/own; echo 2 > own"
    second = Program(tmp_path, "/bin/sh", "-c", script, sandbox=SYSTEM_ONLY).run()
    assert (first.note("own"), second.note("own")) == ("1", "2")


def test_rulesets_made_in_advance_are_closed_with_their_rules():
    version = this_kernel().landlock
    before = len(os.listdir("/proc/self/fd"))
    rules = SharedRules(("/usr",), (), version)
    rules.prepare()
    rules.prepare()
    assert len(os.listdir("/proc/self/fd")) == before + 2
    del rules
    assert len(os.listdir("/proc/self/fd")) == before


def test_rules_are_closed_although_the_modules_are_emptied(monkeypatch):
    """Guard: when Python exits, the names of a module may be None before the last object ends."""
    before = len(os.listdir("/proc/self/fd"))
    rules = SharedRules(("/usr",), (), this_kernel().landlock)
    rules.prepare()
    with monkeypatch.context() as emptied:
        emptied.setattr(sandbox, "os", None)
        emptied.setattr(restrict, "os", None)
        del rules
    assert len(os.listdir("/proc/self/fd")) == before
