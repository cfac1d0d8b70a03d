"""The threads of sandboxes: made before runs need them, kept for later runs of the same agent."""

import os

import pytest

from agents_app.runners import (
    RunControl,
    restrict,
    sandbox,
    sandbox_threads,
    stray_processes,
)
from agents_app.runners.promises import Kernel, this_kernel
from agents_app.runners.sandbox import SHARED_RULES, SharedRules
from agents_app.runners.sandbox_threads import (
    SPARE_THREADS,
    IdleThreads,
    SandboxThread,
    SpareThreads,
)
from tests.agents_app.runners.programs import SYSTEM_ONLY, Program
from tests.parts.processes import is_gone
from tests.parts.waiting import wait_for

pytestmark = pytest.mark.usefixtures("landlock")


@pytest.fixture(autouse=True)
def idle(monkeypatch) -> IdleThreads:
    """No threads of other tests, and one that is kept at most."""
    threads = IdleThreads(most=1)
    monkeypatch.setattr(sandbox, "IDLE", threads)
    monkeypatch.setattr(stray_processes, "IDLE", threads)
    return threads


def _threads_of(idle: IdleThreads) -> list[SandboxThread]:
    return list(idle._threads)


def test_threads_of_ended_runs_end_beside_those_that_are_kept(tmp_path):
    Program(tmp_path, "/bin/true", sandbox=SYSTEM_ONLY).run()
    most = len(os.listdir("/proc/self/task")) + SPARE_THREADS
    for _ in range(SPARE_THREADS + 2):
        Program(tmp_path, "/bin/true", sandbox=SYSTEM_ONLY).run()
        Program(tmp_path, "/no/such/program", sandbox=SYSTEM_ONLY).run()
    wait_for(lambda: len(os.listdir("/proc/self/task")) <= most)


def _run_again(program: Program) -> None:
    """A later run of the agent, in the same directory."""
    program.control = RunControl()
    program.run()


def test_a_run_with_the_same_rules_uses_the_thread_of_the_run_before(tmp_path, idle):
    program = Program(tmp_path, "/bin/sh", "-c", "echo $$ >> own", sandbox=SYSTEM_ONLY).run()
    kept = _threads_of(idle)
    descriptors = len(os.listdir("/proc/self/fd"))
    _run_again(program)
    assert len(kept) == 1
    assert _threads_of(idle) == kept
    assert len(os.listdir("/proc/self/fd")) <= descriptors
    assert len(set(program.note("own").split())) == 2


def test_a_directory_that_was_replaced_is_opened_again(tmp_path, idle):
    program = Program(tmp_path, "/bin/sh", "-c", "echo 1 > own", sandbox=SYSTEM_ONLY).run()
    kept = _threads_of(idle)
    program.cwd.rename(tmp_path / "away")
    program.cwd.mkdir()
    program.spec.prompt_file.write_text("hello")
    _run_again(program)
    assert program.note("own") == "1"
    assert _threads_of(idle) != kept


def test_a_thread_is_not_used_for_rules_that_may_be_out_of_date(tmp_path, idle, monkeypatch):
    monkeypatch.setattr(sandbox, "KEEP_SECONDS", 0)
    monkeypatch.setattr(sandbox, "SHARED_RULES", sandbox.SharedRulesByPaths())
    Program(tmp_path, "/bin/true", sandbox=SYSTEM_ONLY).run()
    assert _threads_of(idle) == []


def test_the_thread_of_a_run_that_left_an_unkillable_process_is_not_used_again(
    tmp_path, idle, monkeypatch
):
    """Such a process would have the rights of the next run."""
    kill = stray_processes._kill
    monkeypatch.setattr(stray_processes, "KILL_SECONDS", 0)
    monkeypatch.setattr(stray_processes, "_kill", lambda _pid: None)
    script = "setsid sleep 100 & echo $! > pid; sleep 0.1"
    program = Program(tmp_path, "/bin/sh", "-c", script, sandbox=SYSTEM_ONLY).run()
    pid = int(program.note("pid"))
    assert not is_gone(pid)
    assert _threads_of(idle) == []
    kill(pid)
    wait_for(lambda: is_gone(pid))


def test_a_thread_that_cannot_start_fails_the_run_as_a_process_does(tmp_path, no_new_threads):
    sandbox_threads.spare_threads.cache_clear()
    outcome = Program(tmp_path, "/bin/true", sandbox=SYSTEM_ONLY).run().outcome
    assert outcome.error.startswith("EAGAIN: '/bin/true' could not start: the process limit")


def test_a_thread_that_could_not_be_made_in_advance_fails_no_later_run(request):
    spare = SpareThreads(Kernel(0, False), drop_capabilities=False)
    rules = SharedRules((), (), 0)
    spare.take().close()
    refused = request.getfixturevalue("no_new_threads")
    spare.refill(rules.prepare)
    with pytest.raises(OSError, match="unavailable"):
        spare.take()
    refused.undo()
    spare.take().close()


@pytest.fixture
def no_new_threads(monkeypatch):
    def refuse(*_: object) -> None:
        raise RuntimeError("can't start new thread")

    monkeypatch.setattr(sandbox_threads._thread, "start_new_thread", refuse)
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
