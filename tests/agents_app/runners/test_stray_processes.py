"""All processes of a run are dead when it ends, and no other process is killed."""

import subprocess
import sys
import threading
import time

import psutil
import pytest

from agents_app.runners.process import ProcessRunner
from agents_app.runners.stray_processes import STRAY_PROCESSES, StrayProcesses
from tests.agents_app.runners.programs import Program, Shell
from tests.parts.processes import all_gone, is_gone
from tests.parts.waiting import wait_for

pytestmark = pytest.mark.usefixtures("nothing_leaks")

QUIET = "</dev/null >/dev/null 2>&1"
PYTHON_DAEMON = """
import os, time
if os.fork() == 0:
    os.setsid()
    if os.fork() == 0:
        os.chdir("/")
        open(PID, "w").write(str(os.getpid()))
        os.closerange(0, 100)
        time.sleep(300)
    os._exit(0)
os.wait()
"""
DAEMONS = {
    "setsid": f"setsid sleep 300 {QUIET} & echo $! > pid",
    "double fork": f"setsid sh -c 'sleep 300 {QUIET} & echo $! > pid' {QUIET}",
    "no environment": f"env -i setsid sleep 300 {QUIET} & echo $! > pid",
    "nohup": f"nohup sleep 300 {QUIET} & echo $! > pid",
    "holds the pipe": "setsid sleep 300 & echo $! > pid",
    "as in the book": 'exec 3<&0; $PYTHON -c "$DAEMON"',
}
ENDINGS = {"success": "exit 0", "failure": "exit 3", "timeout": "sleep 60", "stop": "sleep 60"}


@pytest.mark.parametrize("ending", ENDINGS)
@pytest.mark.parametrize("daemon", DAEMONS)
@pytest.mark.fault("F31")
def test_a_daemon_dies_with_its_run(shell: Shell, daemon, ending):
    program = shell(
        f"{DAEMONS[daemon]}; while ! [ -s pid ]; do sleep 0.01; done; {ENDINGS[ending]}",
        timeout=0.7 if ending == "timeout" else 30,
    )
    source = PYTHON_DAEMON.replace("PID", repr(str(program.cwd / "pid")))
    program.env.update(PYTHON=sys.executable, DAEMON=source)
    program.start()
    pid = program.noted_pid()
    if ending == "stop":
        assert not is_gone(pid)
        program.control.stop("enough")
    program.join()
    wait_for(lambda: is_gone(pid), 2)


def test_a_whole_tree_of_strays_dies_also_where_the_environment_was_wiped(shell: Shell):
    script = (
        'setsid sh -c \'env -i setsid sh -c "sleep 300 & echo \\$! > inner; wait" & '
        f"echo $! > outer; wait' {QUIET} & while ! [ -s inner ]; do sleep 0.01; done"
    )
    program, other = shell(script), shell("sleep 60").start()
    program.run()
    assert all_gone([program.noted_pid("outer"), program.noted_pid("inner")])
    assert not other.ended
    other.control.stop("done")
    other.join()


HYDRA = """
import os, time
while True:
    open("note", "a").write("%d\\n" % os.getpid())
    time.sleep(0.003)
    if os.fork():
        os._exit(0)
    os.setsid()
"""


@pytest.mark.parametrize("attempt", range(5))
def test_a_process_that_forks_repeatedly_is_killed(shell: Shell, attempt):
    program = shell(f'env -i {sys.executable} -c "$HYDRA" {QUIET} & sleep 0.4')
    program.env["HYDRA"] = HYDRA
    program.run()
    pids = program.note("note").split()
    assert len(pids) > 10
    time.sleep(0.1)
    assert program.note("note").split() == pids


def test_two_runs_leave_each_others_strays_alone(shell: Shell):
    script = f"{DAEMONS['setsid']}; while ! [ -e end ]; do sleep 0.02; done"
    one, two = shell(script).start(), shell(script).start()
    one_stray, two_stray = one.noted_pid(), two.noted_pid()
    (one.cwd / "end").touch()
    one.join()
    assert is_gone(one_stray)
    assert not is_gone(two_stray)
    (two.cwd / "end").touch()
    two.join()
    assert is_gone(two_stray)


def test_a_nameless_stray_lives_until_every_run_that_may_own_it_has_ended(shell: Shell):
    wait = "echo up > up; while ! [ -e end ]; do sleep 0.02; done"
    one, two = shell(wait).start(), shell(f"{DAEMONS['no environment']}; {wait}")
    one.note("up")
    two.start()
    stray = two.noted_pid()
    (two.cwd / "end").touch()
    two.join()
    assert not is_gone(stray)
    (one.cwd / "end").touch()
    one.join()
    assert is_gone(stray)


def test_a_run_that_began_later_cannot_own_a_nameless_stray(shell: Shell):
    wait = "while ! [ -e end ]; do sleep 0.02; done"
    one = shell(f"{DAEMONS['no environment']}; {wait}").start()
    stray = one.noted_pid()
    time.sleep(0.05)
    two = shell(wait).start()
    two.pid()
    (one.cwd / "end").touch()
    one.join()
    assert is_gone(stray)
    (two.cwd / "end").touch()
    two.join()


def test_other_children_of_this_process_are_neither_killed_nor_reaped(shell: Shell):
    daemon = subprocess.Popen(["sleep", "60"], start_new_session=True)
    time.sleep(0.05)
    program = shell(f"{DAEMONS['setsid']}; while ! [ -e end ]; do sleep 0.02; done").start()
    program.noted_pid()
    alive = subprocess.Popen(["sleep", "60"])
    dead = subprocess.Popen(["sh", "-c", "exit 7"])
    wait_for(lambda: is_gone(dead.pid))
    (program.cwd / "end").touch()
    program.join()
    assert dead.wait() == 7
    for process in (alive, daemon):
        assert process.poll() is None
        process.kill()
        process.wait()


def test_strays_that_die_during_a_long_run_do_not_stay_zombies(shell: Shell):
    program = shell(
        f"for i in 1 2 3; do setsid sh -c 'sleep 0.05 & echo $! > pid' {QUIET}; done; sleep 60"
    ).start()
    pid = program.noted_pid()
    wait_for(lambda: psutil.Process(pid).status() == psutil.STATUS_ZOMBIE)
    STRAY_PROCESSES.sweep()
    assert not psutil.pid_exists(pid)
    program.control.stop("done")
    program.join()


@pytest.mark.parametrize("daemon", ["setsid", "double fork", "no environment"])
def test_strays_die_also_where_the_kernel_lists_no_children(tmp_path, daemon):
    runner = ProcessRunner(StrayProcesses(orphans_file="/nowhere/{pid}"))
    script = f"{DAEMONS[daemon]}; while ! [ -s pid ]; do sleep 0.01; done"
    program = Program(tmp_path, "/bin/sh", "-c", script, runner=runner).run()
    assert is_gone(program.noted_pid())


def test_without_a_subreaper_the_process_group_is_killed(tmp_path, monkeypatch):
    # This process is a subreaper already; its own instance kills the rest.
    STRAY_PROCESSES.begin_run(-1)
    monkeypatch.setattr(sys, "platform", "darwin")
    runner = ProcessRunner(StrayProcesses())
    program = Program(tmp_path, "/bin/sh", "-c", DAEMONS["nohup"], runner=runner).run()
    assert program.outcome.exit_code == 0
    wait_for(lambda: is_gone(program.noted_pid()), 2)
    STRAY_PROCESSES.end_run(-1)


def test_many_runs_at_once_with_strays_all_end_clean(tmp_path):
    pids: list[int] = []

    def several() -> None:
        for kind in ("setsid", "double fork", "nohup"):
            script = f"{DAEMONS[kind]}; while ! [ -s pid ]; do sleep 0.01; done"
            program = Program(tmp_path, "/bin/sh", "-c", script).run()
            pids.append(program.noted_pid())
            assert is_gone(pids[-1])

    threads = [threading.Thread(target=several) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(pids) == 24


def test_a_run_without_strays_reads_no_processes(tmp_path, monkeypatch):
    """Reading processes costs more than starting one: a single read shows that there is none."""
    no_children = tmp_path / "children"
    no_children.write_text("")
    strays = StrayProcesses(str(no_children))
    looks = []
    monkeypatch.setattr(strays, "_living_strays", lambda: looks.append(1) or [])
    strays.begin_run(-2)
    strays.end_run(-2)
    assert looks == []
