"""Each thing that can be wrong is found, said in one line, and makes the exit code 1."""

import itertools
import socket
import subprocess
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from agents_app.conf import CONF, Conf, read_conf
from agents_app.database import ENGINE
from agents_app.installation import repair_permissions
from agents_app.maintenance import doctor, fleet_checks, security_checks
from agents_app.maintenance.findings import Check
from agents_app.models import Agent, Firing, Schedule, Scheduler, Tenant, WebhookSource
from agents_app.worker.lease import this_host
from tests.agents_app.fleet import NOON, Fleet, at
from tests.agents_app.management.calling import call
from tests.agents_app.management.conftest import write_agent
from tests.parts.processes import stop_process
from tests.parts.redis_part import RedisServer, valkey_binary
from tests.parts.waiting import wait_for


def findings(check: Check, now: datetime = NOON) -> list[tuple[str, str]]:
    return [(verdict, detail) for verdict, detail, _ in check(now)]


def healthy(fleet: Fleet) -> None:
    repair_permissions(CONF)  # as `up` does; earlier tests have left directories
    now = datetime.now(UTC)
    fleet.worker(lease_until=now + timedelta(minutes=1))
    Scheduler.objects.create(pk=1, state="running", started_at=now, last_check_at=now)


def test_a_healthy_installation_passes(
    durable_fleet: Fleet, project: Path, monkeypatch: pytest.MonkeyPatch
):
    # On some machines the user of the tests may use Docker, which doctor warns about.
    monkeypatch.setenv("DOCKER_HOST", f"unix://{project}/no.sock")
    write_agent(project, "greeter", "---\ncommand: [echo]\n---\nx\n")
    call("discover", "--sync")
    healthy(durable_fleet)
    said = call("doctor", "--invariants", "--json")
    wrong = [finding for finding in said.json["findings"] if finding["verdict"] != "ok"]
    assert (said.code, said.json["ok"], wrong) == (0, True, [])
    table = call("doctor").out.splitlines()
    assert table[0].split() == ["VERDICT", "CHECK", "FINDING", "REMEDY"]
    assert len(table) == 1 + len({f["check"] for f in said.json["findings"]} - {"invariants"})


def test_one_thing_that_is_wrong_is_enough(durable_fleet: Fleet):
    healthy(durable_fleet)
    durable_fleet.agent(command=[])
    said = call("doctor", "--json")
    wrong = [f for f in said.json["findings"] if f["verdict"] == "wrong"]
    assert (said.code, said.json["ok"]) == (1, False)
    assert [(f["check"], f["detail"]) for f in wrong] == [
        ("agents", "reporter: it has no command and no harness, and the project has none either")
    ]
    assert wrong[0]["advice"]


def test_a_rule_that_was_broken_is_shown_when_asked_for(durable_fleet: Fleet):
    healthy(durable_fleet)
    durable_fleet.firing(durable_fleet.schedule(durable_fleet.agent(), next_fire_at=at(days=9999)))
    assert Firing.objects.get().outcome == ""
    assert call("doctor").code == 0
    said = call("doctor", "--invariants")
    assert said.code == 1
    assert "undecided_firing: 1" in said.out


# --- what needs no tables -------------------------------------------------------------------


def test_a_redis_that_does_not_answer_is_found(broker: RedisServer):
    assert findings(doctor.check_redis) == [("ok", "answers")]
    broker.stop()
    ((verdict, detail),) = findings(doctor.check_redis)
    assert verdict == "wrong" and detail.startswith("cannot be reached")


def test_a_redis_that_is_frozen_does_not_freeze_the_doctor(
    broker: RedisServer, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(doctor, "REDIS_SECONDS", 0.2)
    broker.freeze()
    ((verdict, _),) = findings(doctor.check_redis)
    assert verdict == "wrong"


def test_a_redis_without_a_password_is_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    server, path = valkey_binary(), tmp_path / "open.sock"
    argv = [str(server), "--port", "0", "--unixsocket", str(path), "--save", ""]
    monkeypatch.setattr(doctor, "CONF", replace(CONF, redis_url=f"redis+socket://{path}"))
    process = subprocess.Popen(argv, cwd=tmp_path, stdout=subprocess.DEVNULL)
    try:
        wait_for(path.exists)
        found = list(doctor.check_redis(NOON))
    finally:
        stop_process(process)
    assert [(verdict, detail) for verdict, detail, _ in found] == [
        ("ok", "answers"),
        ("warning", "serves clients without a password, and so every run"),
    ]
    assert "requirepass" in found[1][2]


def test_a_database_that_takes_any_password_is_found(fleet: Fleet, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(type(ENGINE), "accepts_wrong_password", lambda _: True)
    *_, (verdict, detail, advice) = doctor.check_database(NOON)
    assert (verdict, detail) == ("warning", "lets this user in with any password, and so every run")
    assert "pg_hba.conf" in advice


def test_files_that_other_users_may_read_are_found(monkeypatch: pytest.MonkeyPatch, tmp_path: Path):
    env = {"DROVER_DATA": str(tmp_path)}
    monkeypatch.setattr(security_checks, "CONF", read_conf(env))
    assert findings(security_checks.check_permissions) == [
        ("ok", f"only this user may read {tmp_path}")
    ]
    for number in range(6):
        (tmp_path / f"{number}.password").touch(0o644)
    found = list(security_checks.check_permissions(NOON))
    (path,) = (path for path in tmp_path.iterdir() if str(path) in found[0][1])
    detail = f"other users may access {path} (mode 0644)"
    assert found[0] == ("wrong", detail, f"start Drover again, or: chmod 0600 {path}")
    assert (len(found), found[-1][1]) == (6, "other users may access 1 more paths")


@pytest.mark.parametrize(
    ("mode", "runtime", "found"),
    [
        (0o777, {}, True),
        (0o777, {"type": "container"}, False),
        (0o777, {"type": "host-user", "run_as": "nobody"}, True),
        (0o770, {"type": "host-user", "run_as": "nobody"}, False),
        (0o777, {"type": "host-user", "run_as": "no-such-user"}, False),
    ],
)
def test_a_docker_socket_that_agents_may_write_to_is_found(
    fleet: Fleet, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, mode, runtime, found
):
    monkeypatch.setenv("DOCKER_HOST", f"unix://{tmp_path}/docker.sock")
    fleet.agent(runtime=runtime)
    assert findings(security_checks.check_docker_socket) == []
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(f"{tmp_path}/docker.sock")
        (tmp_path / "docker.sock").chmod(mode)
        warnings = list(security_checks.check_docker_socket(NOON))
    assert [verdict for verdict, _, _ in warnings] == (["warning"] if found else [])
    assert all(
        "can become root" in detail and "container" in advice for _, detail, advice in warnings
    )


def test_a_data_directory_that_is_missing_is_found(monkeypatch: pytest.MonkeyPatch, tmp_path: Path):
    monkeypatch.setattr(doctor, "CONF", _conf(data=tmp_path / "gone"))
    assert findings(doctor.check_data) == [("wrong", f"{tmp_path}/gone does not exist")]


def test_a_data_directory_that_cannot_be_written_is_found(monkeypatch: pytest.MonkeyPatch):
    # Root may write everywhere but here.
    monkeypatch.setattr(doctor, "CONF", _conf(data=Path("/proc/self")))
    assert findings(doctor.check_data)[0][1].startswith("/proc/self cannot be written")


@pytest.mark.parametrize(("free", "verdict"), [(5, "ok"), (0.5, "warning"), (0.05, "wrong")])
def test_a_disk_that_fills_up_is_found(
    free: float, verdict: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
):
    monkeypatch.setattr(doctor, "CONF", _conf(data=tmp_path))
    usage = type("Usage", (), {"free": int(free * 1e9)})
    monkeypatch.setattr("shutil.disk_usage", lambda _: usage)
    assert findings(doctor.check_data) == [(verdict, f"{tmp_path}: {free:.1f} GB free")]


def test_every_problem_of_the_project_is_named(project: Path):
    write_agent(project, "one", "---\nscal: 2\n---\nx\n")
    write_agent(project, "two", "no frontmatter")
    found = findings(doctor.check_project)
    assert {verdict for verdict, _ in found} == {"wrong"}
    assert any(detail.startswith("agents/one/SKILL.md:2: ") for _, detail in found)


def test_an_empty_project_is_no_fault_but_said(project: Path):
    assert findings(doctor.check_project) == [("warning", f"{project}: 0 agents")]


def test_the_format_of_the_project_and_what_is_not_honoured_are_said(project: Path):
    (project / "herdctl.yaml").write_text("web: {enabled: true}\nagents: [{path: a.yaml}]\n")
    (project / "a.yaml").write_text("name: a\n")
    assert findings(doctor.check_project) == [
        ("ok", f"{project} (format herdctl): 1 agents"),
        ("warning", "1 fields or files of herdctl are not honoured"),
    ]


def _conf(data: Path) -> Conf:
    return replace(CONF, data=data)


# --- processes ------------------------------------------------------------------------------


def test_without_a_worker_nothing_can_run(fleet: Fleet):
    assert findings(doctor.check_workers) == [("wrong", "none is alive")]
    fleet.worker(ended_at=NOON)
    fleet.worker(lease_until=at(-1))
    assert findings(doctor.check_workers)[0] == ("wrong", "none is alive")
    fleet.worker()
    alive, silent = findings(doctor.check_workers)
    assert alive == ("ok", "1 alive")
    assert silent == ("warning", "worker-1 has not renewed its lease")


def test_a_silent_beat_is_found(fleet: Fleet):
    assert findings(doctor.check_beat)[0][0] == "wrong"
    Scheduler.objects.create(pk=1, last_check_at=at(-31))
    assert findings(doctor.check_beat) == [("wrong", "silent for 31 s")]
    Scheduler.objects.update(last_check_at=at(-5))
    assert findings(doctor.check_beat) == []


def test_a_drain_stops_beat_and_a_killed_drain_leaves_it_missing(fleet: Fleet):
    Scheduler.objects.create(pk=1, state="draining", last_check_at=at(-31))
    assert findings(doctor.check_beat) == [("wrong", "silent for 31 s")]
    fleet.worker()
    assert findings(doctor.check_beat) == [("ok", "stopped by the drain")]


def test_a_clock_that_went_back_is_found(fleet: Fleet):
    Scheduler.objects.create(pk=1, last_check_at=at(minutes=-1))
    assert [f for f in findings(doctor.check_clock) if "future" in f[1]] == []
    Scheduler.objects.update(last_check_at=at(minutes=10))
    assert "future" in findings(doctor.check_clock)[-1][1]


def test_slow_checks_do_not_make_the_clock_wrong(fleet: Fleet):
    """On a busy host the checks before it take longer than the difference that is allowed."""
    minutes = itertools.count()
    Scheduler.objects.create(pk=1, last_check_at=at(minutes=2))
    found = doctor.examine(lambda: at(minutes=next(minutes)))
    assert [f.detail for f in found if f.check == "clock" and "future" in f.detail] == []


def test_a_worker_from_before_the_reboot_is_found(fleet: Fleet):
    fleet.worker(host="elsewhere")
    fleet.worker(host=this_host())
    found = findings(doctor.check_clock, datetime.now(UTC))
    assert found == [("warning", "worker-1 is from before the last reboot")]


def test_a_pause_is_no_fault_but_said(fleet: Fleet):
    assert findings(doctor.check_scheduler) == [("ok", "is stopped")]
    Tenant.objects.update(paused_at=NOON, pause_note="release")
    Scheduler.objects.create(pk=1, state="draining")
    assert findings(doctor.check_scheduler)[0] == ("ok", "is stopped")
    fleet.worker()
    assert findings(doctor.check_scheduler) == [
        ("warning", "is draining: no new run starts, 0 runs are still running"),
        ("warning", "is paused for default (release)"),
    ]


# --- agents ---------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("columns", "problem"),
    [
        ({"command": ["sh", "-c", "true"]}, ""),
        ({"command": ["/bin/sh"]}, ""),
        ({"command": ["./run.sh"]}, ""),
        ({"command": []}, "it has no command"),
        ({"command": ["no-such-program"]}, "cannot run no-such-program"),
        ({"command": ["./plain.txt"]}, "cannot run "),
        ({"command": ["./gone.sh"]}, "cannot run "),
        ({"command": ["sh"], "runtime": {"type": "teleport"}}, "there is no runtime 'teleport'"),
        ({"command": [], "scale": 0}, ""),
        ({"command": [], "removed_at": NOON}, ""),
    ],
)
def test_an_agent_whose_program_cannot_run_is_found(
    fleet: Fleet, tmp_path: Path, columns: dict[str, Any], problem: str
):
    (tmp_path / "run.sh").touch(mode=0o755)
    (tmp_path / "plain.txt").touch(mode=0o644)
    fleet.agent(directory=str(tmp_path), **columns)
    *problems, total = findings(fleet_checks.check_agents)
    assert total[0] == "ok"
    if problem:
        ((verdict, detail),) = problems
        assert verdict == "wrong" and detail.startswith(f"reporter: {problem}")
    else:
        assert problems == []


@pytest.mark.parametrize(
    ("columns", "problem"),
    [
        ({"expression": "0 9 * * *"}, ""),
        ({"expression": "15m"}, ""),
        ({"expression": "0 0 30 2 *"}, "reporter/main (0 0 30 2 *): "),
        ({"expression": "whenever"}, "reporter/main (whenever): "),
        ({"expression": "@daily", "timezone": "Mars/Base"}, "reporter/main (@daily): "),
        (
            {"expression": "@daily", "next_fire_at": None},
            "reporter/main (@daily): it has no next fire time",
        ),
        ({"expression": "whenever", "state": Schedule.State.PAUSED}, ""),
    ],
)
def test_a_schedule_that_can_never_fire_is_found(
    fleet: Fleet, columns: dict[str, Any], problem: str
):
    fleet.schedule(fleet.agent(), **columns)
    *problems, total = findings(fleet_checks.check_schedules)
    assert total[0] == "ok"
    assert [verdict for verdict, _ in problems] == (["wrong"] if problem else [])
    assert all(detail.startswith(problem) for _, detail in problems)


@pytest.mark.parametrize(("asked", "verdict"), [(8, None), (9, "warning"), (11, "wrong")])
def test_a_queue_near_its_limit_is_found(fleet: Fleet, asked: int, verdict: str | None):
    agent = fleet.agent(work_queue_size=10)
    for _ in range(asked):
        fleet.enqueue(agent)
    assert [said for said, _ in findings(fleet_checks.check_queues)] == (
        [verdict] if verdict else []
    )


def test_a_check_that_cannot_read_its_rows_says_so_and_the_others_go_on(
    durable_fleet: Fleet, monkeypatch: pytest.MonkeyPatch
):
    with monkeypatch.context() as patch:
        patch.setattr(Agent._meta, "db_table", "drover_gone")
        found = {finding.check: finding for finding in doctor.examine(lambda: datetime.now(UTC))}
    assert found["agents"].verdict == "wrong"
    assert found["agents"].detail.startswith("could not be checked: ")
    assert (found["database"].verdict, found["clock"].verdict) == ("ok", "ok"), found["clock"]


def test_a_budget_that_is_used_up_is_found(fleet: Fleet):
    assert findings(fleet_checks.check_budgets) == []
    fleet.agent("spender", over_budget_until=at(hours=12))
    Tenant.objects.update(over_budget_until=at(hours=12))
    assert findings(fleet_checks.check_budgets) == [
        ("warning", "the budget of the project (default) is used up until 2026-03-03 00:00 UTC"),
        ("warning", "the budget of spender is used up until 2026-03-03 00:00 UTC"),
    ]


def test_a_webhook_source_that_does_not_exist_is_found(fleet: Fleet):
    hooks = [{"source": "github"}, {"source": "billing"}]
    fleet.agent(webhooks=hooks, directory="/agents/reporter")
    fleet.agent("gone", webhooks=hooks, removed_at=NOON)
    sources = {"tenant": fleet.tenant, "type": "github"}
    WebhookSource.objects.create(name="github", **sources)
    WebhookSource.objects.create(name="billing", removed_at=NOON, **sources)
    text = "reporter: there is no webhook source 'billing': add [webhooks.billing] to config.toml"
    wrong, ok = findings(fleet_checks.check_webhooks)
    assert wrong[0] == "wrong" and wrong[1].startswith(text)
    assert ok == ("ok", "1 sources")


def test_a_check_with_a_problem_reports_nothing_as_well(fleet: Fleet):
    """Guard: "ok: 1 enabled" beside "cannot run" reads as if the agents were well."""
    fleet.agent(command=[])
    assert [f.verdict for f in doctor._run_check("agents", NOON)] == ["wrong"]
    Agent.objects.update(command=["true"])
    assert [f.verdict for f in doctor._run_check("agents", NOON)] == ["ok"]
