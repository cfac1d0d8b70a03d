"""A second tenant on one running stack: from nothing to a finished run, unseen by the first."""

import json
import urllib.error
import urllib.request
from pathlib import Path
from typing import Any

import pytest

from agents_app.runners import this_kernel
from tests.faults.real_fleet import QUICK
from tests.parts.fixtures import NewStack
from tests.parts.stack_part import PrivateStack
from tests.parts.waiting import wait_for

pytestmark = pytest.mark.slow

MARK = "only-for-acme"
ROLES = ("redis", "worker-1", "beat", "gateway")
# Both tenants have an agent of this name.
SKILL = """---
description: {about}
command: [sh, -c, 'echo {about} $DROVER_STATE_DIR; echo {about} >$DROVER_STATE_DIR/note']
schedule: "0 4 * * *"
---
Report.
"""
KEEPER = f"""---
description: {MARK} keeper
command: [sh, -c, 'test -n "$DOOR_KEY" && rlock file:///srv/map && drover return {MARK}']
credentials: [door_key]
---
Keep the door.
"""
# Tries to read what belongs to the other tenant, which its own file asks for.
SPY = """---
description: reads what is not its own
command: [sh, -c, 'cat {project}/agents/reporter/SKILL.md {state}/note 2>&1; true']
sandbox: {{read: ["{project}", "{state}"]}}
---
Look.
"""
LISTS = (
    *("/agents", "/runs", "/schedules", "/queue", "/events", "/firings", "/locks", "/rules"),
    *("/deliveries", "/tokens", "/scheduler", "/audit"),
)


class Client:
    def __init__(self, stack: PrivateStack, token: str) -> None:
        self.stack, self.token = stack, token

    def get(self, path: str) -> tuple[int, str]:
        request = urllib.request.Request(
            f"{self.stack.url}/v1{path}", headers={"Authorization": f"Bearer {self.token}"}
        )
        try:
            with urllib.request.urlopen(request, timeout=20) as answer:
                return answer.status, answer.read().decode()
        except urllib.error.HTTPError as error:
            return error.code, error.read().decode()


@pytest.fixture(scope="module")
def stack(new_shared_stack: NewStack) -> PrivateStack:
    made = new_shared_stack(DROVER_API_RATE="100000", **QUICK)
    made.write_agent("reporter", SKILL.format(about="of-the-first"))
    assert made.manage("discover", "--sync").returncode == 0
    for role in ROLES:
        made.start(role)
    return made


@pytest.fixture(scope="module")
def project(stack: PrivateStack) -> Path:
    directory = stack.data.parent / "acme"
    (directory / "agents" / "reporter").mkdir(parents=True)
    (directory / "agents" / "reporter" / "SKILL.md").write_text(SKILL.format(about=MARK))
    (directory / "scheduler.rules").write_text(f"[{MARK}] every 1h => pause reporter\n")
    return directory


@pytest.fixture(scope="module")
def acme(stack: PrivateStack, project: Path) -> Client:
    made = stack.manage_json("tenant", "create", "acme", "--project", str(project))
    return Client(stack, made["tokens"][0]["token"])


@pytest.fixture(scope="module")
def first(stack: PrivateStack) -> Client:
    done = stack.manage("token", "create", "ours", "--scope", "operate")
    return Client(stack, done.stdout.strip())


def finished_run(stack: PrivateStack, agent: str, tenant: str) -> dict[str, Any]:
    done = stack.manage("run", agent, "--tenant", tenant, "--wait")
    assert done.returncode == 0, (done.stdout, done.stderr)
    sql = (
        "SELECT r.id, r.agent_id, r.state FROM drover_run r "
        "JOIN drover_agent a ON a.id = r.agent_id "
        "JOIN drover_tenant t ON t.id = a.tenant_id WHERE t.name = ? AND a.name = ? ORDER BY r.id"
    )
    return stack.rows(sql, tenant, agent)[-1] | {"output": done.stdout}


def test_a_second_tenant_runs_agents_that_the_first_cannot_see(
    stack: PrivateStack, project: Path, acme: Client, first: Client
):
    ours = finished_run(stack, "reporter", "default")
    theirs = finished_run(stack, "reporter", "acme")
    assert "of-the-first " in ours["output"] and MARK in theirs["output"]
    assert (ours["state"], theirs["state"]) == ("succeeded", "succeeded")
    # Agents of one name have files of their own.
    states = [stack.data / "state" / str(run["agent_id"]) for run in (ours, theirs)]
    assert [(path / "note").read_text().strip() for path in states] == ["of-the-first", MARK]
    _check_api(first, acme, theirs)
    _check_commands(stack, theirs)


def _check_api(first: Client, acme: Client, theirs: dict[str, Any]) -> None:
    for path in LISTS:
        status, text = first.get(path)
        assert status in {200, 403}, (path, status)
        assert MARK not in text, path
    assert MARK in acme.get("/agents")[1]
    unknown = 987_654
    for path in ("/runs/{}", "/runs/{}/logs", "/runs/{}/logs/stream", "/runs/{}/output"):
        found, missing = (first.get(path.format(run)) for run in (theirs["id"], unknown))
        assert found == missing and found[0] == 404, path
        if not path.endswith("stream"):
            assert acme.get(path.format(theirs["id"]))[0] == 200, path
    assert first.get("/tenants/acme")[0] in {403, 404}


def _check_commands(stack: PrivateStack, theirs: dict[str, Any]) -> None:
    for command in (
        *(("stat", "--json"), ("schedule", "list", "--json"), ("queue", "list", "--json")),
        *(("rules", "list", "--json"), ("credential", "list", "--json"), ("discover", "--json")),
        *(("deliveries", "list", "--json"), ("locks", "list", "--json"), ("audit",)),
    ):
        done = stack.manage(*command)
        assert MARK not in done.stdout, command
    refused = stack.manage("logs", str(theirs["id"]))
    assert refused.returncode == 1 and f"there is no run {theirs['id']}" in refused.stderr
    assert MARK in stack.manage("logs", str(theirs["id"]), "--tenant", "acme").stdout


def test_a_running_beat_reads_new_agents_and_rules_of_the_second_tenant(
    stack: PrivateStack, project: Path, acme: Client, tmp_path: Path
):
    """Credentials, locks and returned values of the tenant are its own, too."""
    (tmp_path / "key").write_text("a-key-of-the-door")
    setting = ("credential", "set", "door_key", "--file", str(tmp_path / "key"))
    assert stack.manage(*setting, "--tenant", "acme").returncode == 0
    (project / "agents" / "keeper").mkdir()
    (project / "agents" / "keeper" / "SKILL.md").write_text(KEEPER)
    wait_for(lambda: "keeper" in acme.get("/agents")[1], 15)
    run = finished_run(stack, "keeper", "acme")
    assert run["state"] == "succeeded"
    wait_for(lambda: MARK in acme.get("/rules")[1], 25)
    assert stack.manage("run", "keeper").returncode == 1  # the first tenant has no such agent


@pytest.mark.skipif(bool(this_kernel().missing), reason="this kernel confines no runs")
def test_a_run_of_the_first_tenant_cannot_read_files_of_the_second(
    stack: PrivateStack, project: Path, acme: Client
):
    theirs = finished_run(stack, "reporter", "acme")
    state = stack.data / "state" / str(theirs["agent_id"])
    stack.write_agent("spy", SPY.format(project=project, state=state))
    # A worker reads the list of tenants again after half a minute.
    stack.stop("worker-1")
    stack.start("worker-1")
    assert stack.manage("discover", "--sync").returncode == 0
    run = finished_run(stack, "spy", "default")
    assert run["output"].count("Permission denied") == 2
    assert MARK not in run["output"]


def test_a_broken_project_is_reported_with_its_tenant_alone(
    stack: PrivateStack, project: Path, acme: Client, first: Client
):
    skill = project / "agents" / "reporter" / "SKILL.md"
    skill.write_text("---\nscal: 2\n---\n")
    sql = "SELECT definition_errors FROM drover_tenant WHERE name = ?"

    def errors(name: str) -> Any:
        value = stack.rows(sql, name)[0]["definition_errors"]
        return json.loads(value) if isinstance(value, str) else value

    wait_for(lambda: errors("acme"), 15)
    assert errors("default") == []
    stack.write_agent("later", SKILL.format(about="of-the-first"))
    wait_for(lambda: '"later"' in first.get("/agents")[1], 15)
    skill.write_text(SKILL.format(about=MARK))
    wait_for(lambda: errors("acme") == [], 15)


def test_a_deleted_tenant_leaves_nothing_but_its_project(
    stack: PrivateStack, project: Path, acme: Client
):
    """The last test of the file: the others use the tenant."""
    run = finished_run(stack, "reporter", "acme")
    state = stack.data / "state" / str(run["agent_id"])
    assert state.is_dir()
    done = stack.manage("tenant", "delete", "acme", "--yes")
    assert done.returncode == 0, done.stderr
    assert not state.exists()
    assert acme.get("/agents")[0] == 401
    assert (project / "agents" / "reporter" / "SKILL.md").exists()
    assert stack.rows("SELECT name FROM drover_tenant") == [{"name": "default"}]
    (count,) = stack.rows("SELECT count(*) AS n FROM drover_run WHERE id = ?", run["id"])
    assert count["n"] == 0
