"""The fleet at a glance: for people in columns and local time, for programs in JSON and UTC."""

from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo

from agents_app.clock import local
from agents_app.models import Agent, Schedule, Scheduler, Tenant, WorkItem
from agents_app.runs import why_waiting
from tests.agents_app.fleet import NOON, Fleet, at
from tests.agents_app.management.calling import call


def _of(name: str) -> dict[str, object]:
    agents = call("stat", "--json").json["agents"]
    found: dict[str, object] = next(agent for agent in agents if agent["name"] == name)
    return found


def test_an_empty_installation_is_a_stopped_scheduler_without_agents(db: None):
    said = call("stat")
    assert said.code == 0
    assert said.out.startswith("scheduler stopped\n0 checks, 0 triggers")
    assert "no agents yet" in said.out
    report = call("stat", "--json").json
    assert (report["scheduler"]["state"], report["agents"]) == ("stopped", [])


def test_the_scheduler_says_how_it_is_doing(fleet: Fleet):
    Scheduler.objects.create(
        pk=1, state="running", started_at=NOON, check_count=7, trigger_count=3, last_check_at=at(5)
    )
    status = call("stat", "--json").json["scheduler"]
    assert status["state"] == "running"
    assert (status["check_count"], status["trigger_count"]) == (7, 3)
    assert status["started_at"] == "2026-03-02T12:00:00Z"
    assert status["last_check_at"] == "2026-03-02T12:00:05Z"
    assert "7 checks, 3 triggers" in call("stat").out


def test_a_running_scheduler_whose_processes_are_silent_is_not_shown_as_fine(fleet: Fleet):
    Scheduler.objects.create(pk=1, state="running", started_at=NOON, last_check_at=NOON)
    assert "not running: worker, beat" in call("stat").out


def test_a_drain_is_shown_until_the_last_process_is_gone(fleet: Fleet):
    worker = fleet.worker(lease_until=at(days=100_000))
    fleet.start(fleet.enqueue(fleet.agent()))
    Scheduler.objects.create(pk=1, state="draining", started_at=NOON)
    assert call("stat", "--json").json["scheduler"]["state"] == "draining"
    assert call("stat").out.startswith("scheduler draining")
    worker.ended_at = NOON
    worker.save()
    assert call("stat").out.startswith("scheduler stopped")


def test_a_paused_scheduler_says_since_when_and_why(fleet: Fleet):
    Tenant.objects.update(paused_at=NOON, pause_note="release day")
    status = call("stat", "--json").json["scheduler"]
    assert (status["paused"], status["pause_note"]) == (True, "release day")
    assert f"paused since {local(NOON)} (release day)" in call("stat").out


def test_each_agent_has_one_of_four_states(fleet: Fleet):
    fleet.agent("fine")
    fleet.agent("resting", paused_at=NOON, pause_note="too loud")
    fleet.agent("small", scale=0)
    fleet.agent("gone", removed_at=NOON)
    fleet.agent("broken", definition_error="agents/broken/SKILL.md:3: no\nmore", paused_at=NOON)
    agents = call("stat", "--json").json["agents"]
    assert {agent["name"]: (agent["state"], agent["note"]) for agent in agents} == {
        "fine": ("enabled", ""),
        "resting": ("paused", "the agent is paused: too loud"),
        "small": ("disabled", "the agent's scale is 0"),
        "gone": ("disabled", "the agent's directory is missing"),
        "broken": ("invalid", "agents/broken/SKILL.md:3: no"),
    }


def test_the_note_of_an_agent_says_why_its_work_waits(fleet: Fleet):
    """A budget, and the error that put work back into the queue, such as Docker that is away."""
    away = "Docker is not reachable at unix:///var/run/docker.sock"
    waiting = fleet.enqueue(fleet.agent(scale=1))
    waiting = fleet.enqueue(waiting.agent)
    WorkItem.objects.filter(pk=waiting.pk).update(reason=f"docker_unavailable: {away}")
    fleet.agent("spent", over_budget_until=at(days=2))
    notes = {each["name"]: each["note"] for each in call("stat", "--json").json["agents"]}
    assert notes["reporter"] == away
    assert notes["spent"].startswith("the agent's budget is used up until 2026-03-04")
    assert f"reporter: {away}\n" in call("stat").out
    waiting.refresh_from_db()
    assert why_waiting(waiting) == away
    Tenant.objects.update(paused_at=NOON, pause_note="night")
    paused = {each["note"] for each in call("stat", "--json").json["agents"]}
    assert paused == {"the scheduler is paused: night"}


def test_an_agents_slots_and_queue_are_counted(fleet: Fleet):
    agent = fleet.agent(scale=2, work_queue_size=9)
    other = fleet.agent("other")
    first, *_ = [fleet.enqueue(agent) for _ in range(5)]
    fleet.enqueue(other)
    fleet.start(first)
    status = _of("reporter")
    counts = ("running", "pending", "scale", "queue_depth", "queue_size")
    assert tuple(status[name] for name in counts) == (1, 1, 2, 3, 9)
    line = next(text for text in call("stat").out.splitlines() if text.startswith("reporter"))
    assert "2/2" in line and "3/9" in line


def test_the_last_run_is_the_newest_and_says_how_it_ended(fleet: Fleet):
    agent = fleet.agent()
    fleet.finish(fleet.start(fleet.enqueue(agent)))
    job = fleet.start(fleet.enqueue(agent), at(60))
    fleet.finish(job, "failed", at(90), exit_code=13, error="invalid config")
    assert _of("reporter")["last_run"] == {
        "id": job.run_id,
        "state": "failed",
        "started_at": "2026-03-02T12:01:00Z",
        "finished_at": "2026-03-02T12:01:30Z",
        "exit_code": 13,
        "error": "invalid config",
    }


def test_the_next_fire_is_the_earliest_of_the_active_schedules(fleet: Fleet):
    agent = fleet.agent()
    fleet.schedule(agent, name="late", next_fire_at=at(hours=2))
    fleet.schedule(agent, name="early", next_fire_at=at(hours=1))
    fleet.schedule(agent, name="paused", next_fire_at=NOON, state=Schedule.State.PAUSED)
    assert _of("reporter")["next_fire_at"] == "2026-03-02T13:00:00Z"
    Agent.objects.update(scale=0)
    assert _of("reporter")["next_fire_at"] is None


def test_workers_are_shown_with_what_they_run(fleet: Fleet):
    now = datetime.now(UTC)
    alive = fleet.worker(lease_until=now + timedelta(minutes=1))
    fleet.worker(lease_until=now - timedelta(minutes=1))
    fleet.worker(ended_at=now)
    fleet.start(fleet.enqueue(fleet.agent()), worker=alive)
    workers = call("stat", "--json").json["workers"]
    assert [(w["name"], w["state"], w["running"]) for w in workers] == [
        ("worker-0", "alive", 1),
        ("worker-1", "silent", 0),
    ]


def test_other_tenants_agents_are_not_shown(fleet: Fleet):
    fleet.agent("mine")
    Tenant.objects.create(name="other").agents.create(name="theirs")
    assert [a["name"] for a in call("stat", "--json").json["agents"]] == ["mine"]
    theirs = call("stat", "--json", "--tenant", "other").json
    assert [a["name"] for a in theirs["agents"]] == ["theirs"]


def test_a_note_cannot_play_tricks_with_the_terminal(fleet: Fleet):
    fleet.agent(paused_at=NOON, pause_note="a\x1b[2Jb\nc [bold]d")
    out = call("stat").out
    assert "ab c [bold]d" in out
    assert "\x1b" not in out


def test_local_times_name_their_zone():
    assert local(NOON, ZoneInfo("Europe/Berlin")) == "2026-03-02 13:00:00 CET"
    assert local(at(days=120), ZoneInfo("Europe/Berlin")) == "2026-06-30 14:00:00 CEST"


def test_an_agent_that_has_used_up_its_budget_says_until_when(fleet: Fleet):
    fleet.agent(over_budget_until=at(hours=12))
    assert _of("reporter")["note"] == f"the agent's budget is used up until {local(at(hours=12))}"
