"""An agent without credentials that tries to reach everything of a running installation."""

import json
import pwd
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import psutil
import pytest

from agents_app.installation import redis_socket_path
from agents_app.runners import this_kernel
from tests.end_to_end.hostile_program import HOSTILE
from tests.parts.fixtures import NewDatabase
from tests.parts.missing import missing
from tests.parts.processes import tree_of
from tests.parts.user_stack import UserStack
from tests.parts.users_part import Users
from tests.parts.waiting import wait_for

pytestmark = pytest.mark.slow

SKILL = """---
description: tries everything
command: ["./hostile.py"]
sandbox: {sandbox}
---
"""
VICTIM = """---
description: has a secret in its environment and in its directories
command: ["/bin/sh", "-c", "echo secret | tee kept >$DROVER_STATE_DIR/kept; exec sleep 300"]
env: {SECRET: "8f3a91c77d"}
---
"""
# Of an installation that runs; each must be among the targets.
KEYS_AND_ROWS = {
    *("credential_keys", "secret_key", "redis.password", "up.lock"),
    *("drover.sqlite3", "drover.sqlite3-wal", "drover.sqlite3-shm"),
}


@pytest.fixture(scope="module", params=["root", "ordinary user"])
def stack(
    request: pytest.FixtureRequest, users: Users, migrated_database: NewDatabase
) -> Iterator[UserStack]:
    if this_kernel().missing:
        missing("a kernel with Landlock 6", "use Linux 6.12 or newer")
    user = "root" if request.param == "root" else users.worker
    directory = users.public_directory(user)
    made = UserStack(user, directory, migrated_database(directory / "data"))
    made.write_agent("victim", VICTIM)
    for name, sandbox in (("confined", "required"), ("free", "off")):
        program = made.write_agent(name, SKILL.format(sandbox=sandbox)) / "hostile.py"
        program.write_text(HOSTILE)
        program.chmod(0o755)
    key = directory / "key"
    key.write_text("a-secret-of-another-agent")
    made.give_files()
    with made:
        made.up()
        assert made.manage("credential", "set", "door_key", "--file", str(key)).returncode == 0
        yield made
        made.manage("stop", "victim")


def targets_of(stack: UserStack) -> dict[str, Any]:
    """All files of the installation, its processes, and those of another run."""
    below = sorted(stack.data.rglob("*"))
    processes = tree_of(stack.processes["up"].pid)
    return {
        "files": [str(path) for path in below if path.is_file()],
        "directories": [
            *(str(path) for path in (stack.data, *below) if path.is_dir()),
            *(pwd.getpwuid(stack.owner.pw_uid).pw_dir, str(stack.project)),
        ],
        "processes": processes,
        "redis": str(redis_socket_path(stack.data)),
        "password": str(stack.data / "redis.password"),
    }


def got_by(stack: UserStack, agent: str, targets: dict[str, Any]) -> set[str]:
    """What the agent reached, as it prints it."""
    (stack.project / "agents" / agent / "targets.json").write_text(json.dumps(targets))
    done = stack.manage("run", agent, "--wait", "--timeout", "60")
    assert done.returncode == 0, done.stdout + done.stderr
    (line,) = [line for line in done.stdout.splitlines() if line.startswith("[")]
    return set(json.loads(line))


def test_a_hostile_agent_reaches_nothing_of_the_installation(stack: UserStack) -> None:
    """Guard: the sandbox. Without it the same agent reaches all of it."""
    assert stack.manage("run", "victim").returncode == 0
    (run,) = stack.wait_for_rows("SELECT id, pid FROM drover_run WHERE pid IS NOT NULL")
    wait_for(lambda: psutil.Process(run["pid"]).name() == "sleep", 20)
    targets = targets_of(stack)
    names = {Path(path).name for path in targets["files"]}
    assert names >= KEYS_AND_ROWS | {"kept"}, names
    assert any(path.startswith(f"{stack.data}/logs/") for path in targets["files"])
    assert run["pid"] in targets["processes"] and len(targets["processes"]) >= 6
    assert psutil.Process(run["pid"]).uids().effective == stack.owner.pw_uid

    # The directory of the socket on which every run reports; nothing else is in it.
    assert got_by(stack, "confined", targets) == {f"list {stack.data}/gateway"}
    (row,) = stack.rows("SELECT sandbox FROM drover_run ORDER BY id DESC LIMIT 1")
    assert row["sandbox"] == "on"

    got = got_by(stack, "free", targets)
    wanted = {f"read {path}" for path in targets["files"] if Path(path).name in KEYS_AND_ROWS}
    assert wanted - {f"read {stack.data}/up.lock"} <= got
    for verb in ("signal", "environ", "limit", "priority", "descriptors"):
        assert f"{verb} {run['pid']}" in got, verb
    assert "redis with its password" in got and "redis" not in got
