"""A scheduler in a plain script: no Django, no Redis; programs are executed by a worker process."""

import json
import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from agents_app.conf import ROOT
from tests.parts.fixtures import NewDatabase
from tests.parts.processes import all_gone, tree_of
from tests.parts.stack_part import PrivateStack
from tests.parts.waiting import wait_for

HEAD = """
import json, sys, time
from agents_app.scheduler import *
def agent(script, **fields):
    return {"name": "worker", "command": ["sh", "-c", script], **fields}
NOW = {"now": {"interval": "1d"}}
def wait(done):
    give_up_at = time.monotonic() + 60
    while not done():
        assert time.monotonic() < give_up_at, "nothing happened in a minute"
        time.sleep(0.05)
"""
# Nothing answers there: a program that used Redis would fail or warn.
NO_REDIS = "redis://127.0.0.1:1"


class Script:
    """Runs programs in a directory of their own, on a database with all tables."""

    def __init__(self, directory: Path, url: str) -> None:
        self.directory = directory
        self.stack = PrivateStack(directory / "unused", url)
        paths = {name: os.environ[name] for name in ("PATH", "HOME") if name in os.environ}
        self.env = {**paths, "PYTHONPATH": str(ROOT), "REDIS_URL": NO_REDIS}
        self.env |= {"DROVER_RECONCILE_SECONDS": "1"}

    def begin(self, text: str) -> subprocess.Popen[str]:
        (self.directory / "program.py").write_text(
            f"{HEAD}STATE = {self.stack.database_url!r}\n{text}"
        )
        return subprocess.Popen(
            [sys.executable, "program.py"],
            cwd=self.directory,
            env=self.env,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )

    def run(self, text: str) -> Any:
        """The JSON that the program prints in its last line."""
        out, errors = self.begin(text).communicate(timeout=120)
        assert errors == "", errors
        return json.loads(out.splitlines()[-1])

    def ended(self) -> list[dict[str, Any]]:
        sql = "SELECT state, error, return_value FROM drover_run WHERE finished_at IS NOT NULL"
        return self.stack.wait_for_rows(sql)


@pytest.fixture
def script(tmp_path: Path, migrated_database: NewDatabase) -> Script:
    return Script(tmp_path, migrated_database(tmp_path / ".drover"))


def test_a_script_starts_fires_and_stops_without_redis(script: Script):
    shown = script.run(
        """
scheduler = Scheduler(state=STATE, check_interval=0.05)
scheduler.start([agent("cat; drover return done", instructions="Be short.", schedules=NOW)])
wait(lambda: get_schedule_state(STATE, "worker", "now").last_run_at)
scheduler.stop()
from agents_app.events import relay
relay.publish(1, 1)  # without Redis this is no error
print(json.dumps([scheduler.get_status(), scheduler.get_state().trigger_count]))
"""
    )
    assert shown == ["stopped", 1]
    assert script.ended() == [{"state": "succeeded", "error": "", "return_value": "done"}]
    (worker,) = script.stack.rows("SELECT state, pid FROM drover_worker")
    assert worker["state"] == "stopped"
    assert all_gone([worker["pid"]])


def test_runs_that_a_stop_does_not_wait_for_are_finished_and_recorded(script: Script):
    shown = script.run(
        """
scheduler = Scheduler(state=STATE, check_interval=0.05)
scheduler.start([agent("sleep 2; drover return late", schedules=NOW)])
wait(lambda: scheduler.get_running_job_count("worker"))
try:
    scheduler.stop(timeout=0.2)
except SchedulerShutdownError as error:
    print(json.dumps([error.timed_out, error.running_job_count, scheduler.get_status()]))
"""
    )
    assert shown == [True, 1, "stopped"]
    assert script.ended() == [{"state": "succeeded", "error": "", "return_value": "late"}]


def test_the_runs_of_a_killed_script_finish_and_nothing_is_left(script: Script):
    program = script.begin(
        """
scheduler = Scheduler(state=STATE, check_interval=0.05)
scheduler.start([agent("sleep 1; drover return late", schedules=NOW)])
time.sleep(100)
"""
    )
    script.stack.wait_for_rows("SELECT 1 FROM drover_run WHERE state = 'running'")
    below = tree_of(program.pid)
    assert len(below) > 2  # the guard and the worker
    program.kill()
    program.communicate()
    assert [run["state"] for run in script.ended()] == ["succeeded"]
    wait_for(lambda: all_gone(below), 15, f"processes are left: {below}")


def test_a_worker_process_that_was_killed_is_started_again(script: Script):
    program = script.begin(
        """
scheduler = Scheduler(state=STATE, check_interval=0.05)
scheduler.start([agent("true", schedules=NOW)])
wait(lambda: get_schedule_state(STATE, "worker", "now").last_run_at)
sys.stdin.readline()
print(json.dumps(run_schedule(STATE, "worker", "now").state))
scheduler.stop()
"""
    )
    (worker,) = script.stack.wait_for_rows("SELECT pid FROM drover_worker")
    script.stack.wait_for_rows("SELECT 1 FROM drover_run WHERE state = 'succeeded'")
    os.kill(worker["pid"], signal.SIGKILL)
    out, errors = program.communicate("the worker is dead\n", timeout=120)
    assert json.loads(out.splitlines()[-1]) == "succeeded"
    assert "the worker process has ended with status" in errors
    assert len(script.stack.rows("SELECT 1 FROM drover_worker")) == 2


def test_the_errors_of_a_script_are_those_of_the_documentation(script: Script):
    shown = script.run(
        """
said = []
def refused(call, *arguments, **options):
    try:
        call(*arguments, **options)
    except SchedulerError as error:
        said.append(f"{type(error).__name__}: {error}")
refused(parse_interval, "5x")
refused(Scheduler(check_interval=1).start, [])
refused(Scheduler(state=STATE).start, [{"name": "worker"}])
refused(get_schedule_state, "elsewhere", "worker", "now")
refused(get_schedule_state, STATE, "worker", "now")
print(json.dumps(said))
"""
    )
    interval, no_state, no_command, other_state, no_agent = shown
    assert interval.startswith('IntervalParseError: Invalid time unit "x"')
    assert no_state.startswith("SchedulerError: state: give a directory or the URL of a database")
    assert no_command.startswith("SchedulerError: agents[0] (worker): no command")
    assert "a process has one state; start another process for" in other_state
    assert no_agent == "SchedulerError: there is no agent 'worker': there are none"


def test_the_logging_of_a_script_stays_its_own(script: Script):
    shown = script.run(
        """
import logging
records = []
class Remember(logging.Handler):
    def emit(self, record): records.append((record.name, record.getMessage()))
logging.basicConfig(level="INFO", handlers=[Remember()], force=True)
scheduler = Scheduler(state=STATE, check_interval=0.05)
scheduler.start([agent("true", schedules=NOW)])
wait(lambda: any("event='firing.started'" in text for _, text in records))
scheduler.stop()
print(json.dumps([type(each).__name__ for each in logging.getLogger().handlers]))
"""
    )
    assert shown == ["Remember"]
