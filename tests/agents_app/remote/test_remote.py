"""`drover --url`: the same commands with a real Drover behind its API."""

import json
import os
import re
import select
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from tests.agents_app.remote.cutting_proxy import CuttingProxy
from tests.parts.fixtures import NewStack
from tests.parts.stack_part import ROOT, PrivateStack
from tests.parts.waiting import wait_for

pytestmark = pytest.mark.slow

GREETER = (
    "---\ndescription: Greets\ncommand: [echo, hello]\nschedule: every day at 03:00\n---\nGreet.\n"
)
# Prints slowly enough for a stream to be cut between its lines.
COUNTER = """\
---
description: Counts
command: [sh, -c, "for i in 1 2 3 4 5 6; do echo line $i; sleep 0.4; done; echo bad >&2; exit 3"]
---
Count.
"""
SLEEPER = "---\ndescription: Sleeps\ncommand: [sleep, '600']\n---\nSleep.\n"
LOADED = (
    "import sys; from scheduler_project.command import main\n"
    "try:\n    main(sys.argv[1:])\nfinally:\n"
    "    print([name for name in ('django', 'agents_app.conf') if name in sys.modules])\n"
)


class Remote:
    """The command `drover` on a machine without a project."""

    def __init__(self, stack: PrivateStack, token: str, directory: Path) -> None:
        self.stack, self.token, self.directory = stack, token, directory
        self.env = {
            "PATH": os.environ["PATH"],
            "HOME": str(directory),
            "PYTHONPATH": str(ROOT),
            "DROVER_URL": stack.url,
            "DROVER_TOKEN": token,
        }

    def start(self, *words: str, code: str = "", **env: str) -> subprocess.Popen[str]:
        program = ["-c", code] if code else ["-m", "scheduler_project.command"]
        return subprocess.Popen(
            [sys.executable, *program, *words],
            cwd=self.directory,
            env={name: value for name, value in (self.env | env).items() if value},
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )

    def call(self, *words: str, code: str = "", **env: str) -> subprocess.CompletedProcess[str]:
        process = self.start(*words, code=code, **env)
        out, err = process.communicate(timeout=60)
        return subprocess.CompletedProcess(words, process.returncode, out, err)

    def json(self, *words: str) -> Any:
        done = self.call(*words, "--json")
        assert done.returncode == 0, done.stderr
        return json.loads(done.stdout)


@pytest.fixture(scope="module")
def stack(new_shared_stack: NewStack) -> PrivateStack:
    stack = new_shared_stack()
    for name, skill in (("greeter", GREETER), ("counter", COUNTER), ("sleeper", SLEEPER)):
        stack.write_agent(name, skill)
    stack.up(60)
    return stack


@pytest.fixture(scope="module")
def remote(stack: PrivateStack, tmp_path_factory: pytest.TempPathFactory) -> Remote:
    return Remote(stack, token_of(stack, "admin"), tmp_path_factory.mktemp("elsewhere"))


def token_of(stack: PrivateStack, scope: str, tenant: str = "default") -> str:
    words = ("--scope", scope, "--tenant", tenant)
    made = stack.manage("token", "create", f"{scope}-{time.monotonic_ns()}", *words)
    assert made.returncode == 0, made.stderr
    return made.stdout.strip()


@pytest.fixture(scope="module")
def greeted(remote: Remote) -> int:
    """A finished run of greeter, whose schedule fires far in the future."""
    done = remote.call("run", "greeter", "--wait", "--json")
    assert done.returncode == 0, done.stderr
    return int(json.loads(done.stdout)["run_id"])


def normal(text: str) -> str:
    """Without what differs between two moments, and without parts of seconds."""
    text = re.sub(r"(\d\d:\d\d:\d\d)\.\d+", r"\1", text)
    text = re.sub(r"(in )?\d+ (s|min|h|d)( ago)?|now", "then", text)
    text = re.sub(r"\d+ checks|check_count.: \d+", "checks", text)
    text = re.sub(r"last check \S+ \S+|last_check_at\S+ \S+|lease_until\S+ \S+", "then", text)
    text = re.sub(r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d UTC$", "then", text, flags=re.MULTILINE)
    return " ".join(text.split()).replace("manage.py", "drover")


@pytest.mark.parametrize(
    "line",
    [
        *("stat", "stat --json", "stat greeter", "logs {run}", "logs {run} --json", "logs greeter"),
        *("schedule list", "schedule list --json", "schedule show greeter"),
        *("schedule show greeter --json", "schedule next greeter --count 3"),
        *("schedule next greeter --json", "schedule history greeter", "why greeter"),
        *("why greeter --json", "schedule firings", "schedule list --state paused"),
        *("logs nobody", "logs greeter counter nobody", "logs 987654", "why gretter"),
        *("schedule create greeter every nonsense -m x", "rerun nine", "stop --keep-queue greeter"),
        "schedule create counter --cron '0 9 * * 1-5' -m x --dry-run",
        "schedule create counter --cron '0 9 * * 1-5' -m x --dry-run --json",
    ],
)
def test_a_remote_command_prints_what_the_local_one_prints(remote: Remote, greeted: int, line: str):
    words = [word.strip("'") for word in re.findall(r"'[^']*'|\S+", line.format(run=greeted))]
    here, there = remote.stack.manage(*words), remote.call(*words)
    assert there.returncode == here.returncode, there.stderr
    assert normal(there.stdout) == normal(here.stdout)
    assert normal(there.stderr).removeprefix("drover: ") == normal(here.stderr).removeprefix(
        "drover: "
    )


def test_run_with_wait_prints_the_output_and_exits_as_the_run(remote: Remote):
    done = remote.call("run", "counter", "--wait")
    assert done.returncode == 3
    assert done.stdout.splitlines()[1:] == [f"line {n}" for n in range(1, 7)] + ["bad"]
    assert re.search(r"^run \d+ failed: exit code 3$", done.stderr, re.MULTILINE)


def test_a_wait_that_is_over_leaves_the_work(remote: Remote):
    done = remote.call("run", "sleeper", "--wait", "--timeout", "1")
    assert done.returncode == 124 and "not finished after 1 s" in done.stderr
    run = remote.json("stat", "sleeper")["agents"][0]["last_run"]["id"]
    stopped = remote.json("stop", f"run:{run}", "--timeout", "30")
    assert stopped == {"runs": [run], "ended": True}
    again = remote.json("rerun", str(run))
    assert again["agent"] == "sleeper"
    assert remote.json("stop", "sleeper", "--timeout", "30")["ended"] is True


def test_a_schedule_is_created_paused_resumed_and_canceled(remote: Remote):
    made = remote.json("schedule", "create", "counter", "--at", "2031-06-01 12:00", "-m", "once")
    assert (made["agent"], made["kind"], made["state"]) == ("counter", "once", "active")
    name = f"counter/{made['name']}"
    paused = remote.call("schedule", "pause", name, "--until", "tomorrow")
    assert paused.stdout.startswith(f"{name} paused until "), paused.stderr
    assert remote.call("schedule", "pause", name).stdout == f"{name} was already paused\n"
    assert "resumed, next fire" in remote.call("schedule", "resume", name).stdout
    assert remote.json("schedule", "cancel", name)["schedule"]["state"] == "canceled"
    refused = remote.call("schedule", "resume", name)
    assert (refused.returncode, refused.stdout) == (1, "") and "canceled" in refused.stderr


def test_a_schedule_without_a_prompt_is_refused_with_the_option(remote: Remote):
    done = remote.call("schedule", "create", "counter", "every day at 09:00")
    assert done.returncode == 1 and "add -m TEXT" in done.stderr


def test_a_followed_run_goes_on_after_broken_connections(remote: Remote):
    asked = remote.json("run", "counter")
    proxy = CuttingProxy(remote.stack.conf.port, [b'"line 2"', b'"line 4"'])
    try:
        url = f"http://127.0.0.1:{proxy.port}"
        run = str(asked["run_id"] or wait_for_run(remote, asked["work_item_id"]))
        done = remote.call("logs", run, "-f", DROVER_URL=url)
    finally:
        proxy.close()
    assert proxy.cuts == 2 and done.returncode == 0, done.stderr
    assert done.stdout.splitlines() == [f"line {n}" for n in range(1, 7)] + ["bad"]
    assert "the connection broke; connecting again" in done.stderr


def wait_for_run(remote: Remote, item: int) -> int:
    def runs() -> list[Any]:
        return remote.stack.rows("SELECT id FROM drover_run WHERE work_item_id = ?", item)

    wait_for(lambda: bool(runs()), 20, lambda: "no run")
    return int(runs()[0]["id"])


def line_after_runs(remote: Remote, process: "subprocess.Popen[str]", *agents: str) -> str:
    """The next line of a command that follows the agents, which are run until it prints one.

    Once would not do: a run that ends before the first look of the command belongs to the past.
    """
    assert process.stdout is not None
    while True:
        for agent in agents:
            assert remote.json("run", agent)["agent"] == agent
        if select.select([process.stdout], [], [], 2)[0]:
            return process.stdout.readline()


def test_an_agent_is_followed_from_run_to_run_until_ctrl_c(remote: Remote, greeted: int):
    process = remote.start("logs", "greeter", "-f", "--json")
    assert process.stdout is not None
    seen: list[int] = []
    try:
        for _ in range(2):
            line = json.loads(line_after_runs(remote, process, "greeter"))
            assert (line["agent"], line["text"]) == ("greeter", "hello")
            seen.append(line["run_id"])
    finally:
        process.send_signal(signal.SIGINT)
        _, err = process.communicate(timeout=20)
    assert process.returncode == 0, err
    assert greeted < seen[0] < seen[1]
    assert f"greeter: run {seen[0]} succeeded" in err


def test_several_agents_are_followed_with_their_names(remote: Remote):
    process = remote.start("logs", "greeter", "counter", "-f")
    assert process.stdout is not None
    try:
        agents: set[str] = set()
        while len(agents) < 2:
            agents.add(line_after_runs(remote, process, "counter", "greeter").split()[0])
    finally:
        process.send_signal(signal.SIGINT)
        process.communicate(timeout=20)
    assert agents == {"greeter", "counter"}


@pytest.mark.parametrize(
    ("words", "env", "status", "text"),
    [
        (["stat"], {"DROVER_URL": "http://127.0.0.1:9"}, 1, "cannot be reached"),
        (["stat"], {"DROVER_URL": "ftp://x"}, 1, "is not the address of a Drover"),
        (["stat"], {"DROVER_TOKEN": "wrong"}, 1, "does not know the token"),
        (["stat"], {"DROVER_TOKEN": ""}, 1, "there is no token for"),
        (["run", "greter"], {}, 1, "there is no agent 'greter'; did you mean 'greeter'?"),
        (["backup", "x"], {}, 2, "there are logs, rerun, run, schedule, stat, stop, why"),
        (["stat", "--project", "x", "--url", "http://127.0.0.1:9"], {}, 2, "leave --project"),
        (["stat", "--tenant", "acme"], {}, 1, "the token decides which tenant"),
        (["--token-file", "missing", "stat"], {}, 1, "cannot be read: No such file"),
        (["run"], {}, 2, "required: AGENT"),
    ],
)
def test_a_refusal_says_what_to_do(
    remote: Remote, words: list[str], env: dict[str, str], status: int, text: str
):
    done = remote.call(*words, **env)
    assert (done.returncode, done.stdout) == (status, "")
    assert text in done.stderr and "Traceback" not in done.stderr


def test_https_to_a_server_without_tls_is_refused(remote: Remote):
    done = remote.call("stat", DROVER_URL=remote.stack.url.replace("http:", "https:"))
    assert done.returncode == 1 and "does not speak TLS" in done.stderr


def test_a_token_without_the_scope_is_refused_with_the_reason(remote: Remote):
    token = token_of(remote.stack, "read")
    assert remote.call("stat", DROVER_TOKEN=token).returncode == 0
    done = remote.call("run", "greeter", DROVER_TOKEN=token)
    assert done.returncode == 1 and "this needs the scope 'operate'" in done.stderr


def test_a_token_file_wins_over_the_variable_and_must_be_private(remote: Remote, tmp_path: Path):
    file = tmp_path / "token"
    file.write_text(f"{remote.token}\n")
    file.chmod(0o600)
    done = remote.call("stat", "--token-file", str(file), DROVER_TOKEN="wrong")
    assert (done.returncode, done.stderr) == (0, "")
    file.chmod(0o644)
    assert "other users may read" in remote.call("stat", "--token-file", str(file)).stderr


def test_a_token_on_the_command_line_is_removed_from_the_list_of_processes(remote: Remote):
    words = ("--token", remote.token, "logs", "greeter", "-f")
    process = remote.start(*words, DROVER_TOKEN="")
    command_line = Path(f"/proc/{process.pid}/cmdline")
    try:
        wait_for(
            lambda: command_line.read_bytes().startswith(b"drover "), 20, command_line.read_text
        )
        assert remote.token.encode() not in command_line.read_bytes()
    finally:
        process.send_signal(signal.SIGINT)
        _, err = process.communicate(timeout=20)
    assert "use DROVER_TOKEN or --token-file" in err


def test_a_remote_command_loads_neither_django_nor_settings(remote: Remote):
    done = remote.call("stat", code=LOADED)
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines()[-1] == "[]"


def test_names_are_completed_from_the_remote_drover(remote: Remote):
    assert remote.call("--names", "agents").stdout.split() == ["counter", "greeter", "sleeper"]
    assert "greeter/default" in remote.call("--names", "schedules").stdout.split()
    assert remote.call("--names", "agents", DROVER_TOKEN="wrong").stdout == ""


def test_another_tenant_sees_its_own_fleet_without_workers(remote: Remote):
    assert remote.stack.manage("tenant", "create", "acme").returncode == 0
    token = token_of(remote.stack, "admin", "acme")
    shown = json.loads(remote.call("stat", "--json", DROVER_TOKEN=token).stdout)
    assert (shown["agents"], shown["workers"]) == ([], [])
    assert remote.call("logs", "greeter", DROVER_TOKEN=token).returncode == 1
