"""What people do to schedules in a terminal: pause, resume, cancel, retry."""

import pytest

from agents_app.cli.command import DroverCommand
from agents_app.models import Firing, RunEvent, Schedule, Tenant, WorkItem
from agents_app.schedules import due, firings
from tests.agents_app.fleet import NOON, Fleet, at, work_states
from tests.agents_app.management.calling import Said, call


@pytest.fixture(autouse=True)
def at_noon(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(DroverCommand, "now", NOON)


def do(verb: str, *arguments: str) -> Said:
    return call("schedule", verb, *arguments)


def refused(verb: str, *arguments: str) -> str:
    said = do(verb, *arguments)
    assert (said.code, said.out) == (1, "")
    return said.err.removesuffix("\n")


def state_of(schedule: Schedule) -> str:
    schedule.refresh_from_db()
    return schedule.state


# --- which one ------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["main", "reporter/main", "{}", "#{}"])
def test_a_schedule_is_named_in_any_of_four_ways(fleet: Fleet, name: str):
    schedule = fleet.schedule(fleet.agent())
    assert do("pause", name.format(schedule.pk)).out == "reporter/main paused\n"


def test_a_name_that_several_agents_use_must_be_made_clear(fleet: Fleet):
    one, two = (fleet.schedule(fleet.agent(name)) for name in ("reporter", "other"))
    assert refused("pause", "main") == (
        f"'main' is ambiguous: use one of other/main (#{two.pk}, active), "
        f"reporter/main (#{one.pk}, active)"
    )
    assert do("pause", "other/main").code == 0
    assert (state_of(one), state_of(two)) == ("active", "paused")


def test_a_number_that_is_also_a_name_must_be_made_clear(fleet: Fleet):
    agent = fleet.agent()
    one = fleet.schedule(agent)
    fleet.schedule(agent, name=str(one.pk))
    assert "is ambiguous: use one of" in refused("pause", str(one.pk))
    assert do("pause", f"#{one.pk}").out == "reporter/main paused\n"
    assert do("pause", f"reporter/{one.pk}").out == f"reporter/{one.pk} paused\n"


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("mian", "there is no schedule 'mian'; did you mean 'main'?"),
        ("reporter/mian", "there is no schedule 'reporter/mian'; did you mean 'reporter/main'?"),
        ("zzz", "there is no schedule 'zzz'"),
        ("#4711", "there is no schedule '#4711'"),
    ],
)
def test_an_unknown_one_is_answered_with_the_nearest(fleet: Fleet, name: str, message: str):
    fleet.schedule(fleet.agent())
    assert refused("show", name) == f"{message} (manage.py schedule list shows the schedules)"


def test_the_name_of_an_agent_is_answered_with_its_schedules(fleet: Fleet):
    agent = fleet.agent()
    for name in ("night", "main"):
        fleet.schedule(agent, name=name)
    assert refused("pause", "reporter") == (
        "'reporter' is an agent; its schedules are reporter/main, reporter/night"
    )


@pytest.mark.parametrize("verb", ["show", "next", "pause", "resume", "cancel", "retry", "why"])
def test_another_tenants_schedule_does_not_exist(fleet: Fleet, verb: str):
    schedule = fleet.schedule(fleet.agent())
    Tenant.objects.create(name="others")
    message = f"there is no schedule '#{schedule.pk}' (manage.py schedule list shows the schedules)"
    assert refused(verb, f"#{schedule.pk}", "--tenant", "others") == message


# --- pause and resume -----------------------------------------------------------------------


def test_a_pause_has_a_note_and_an_end(fleet: Fleet):
    schedule = fleet.schedule(fleet.agent())
    said = do("pause", "main", "--until", "in 2 hours", "--note", "too loud")
    assert said.out == "reporter/main paused until Mon 02 Mar 2026 14:00 UTC (in 2 h)\n"
    assert state_of(schedule) == "paused"
    assert (schedule.pause_until, schedule.pause_note) == (at(hours=2), "too loud")
    assert RunEvent.objects.get(name="schedule.paused").detail.endswith(": too loud")


@pytest.mark.parametrize(
    ("until", "hours"),
    [("tomorrow", 20), ("17:00", 4), ("2026-03-02T20:00:00Z", 8), ("2026-03-03 13:00", 24)],
)
def test_the_end_of_a_pause_is_read_in_the_schedules_zone(fleet: Fleet, until: str, hours: int):
    schedule = fleet.schedule(fleet.agent(), timezone="Europe/Berlin")
    do("pause", "main", "--until", until)
    schedule.refresh_from_db()
    assert schedule.pause_until == at(hours=hours)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("--until", "15m"), "--until '15m': this is a recurring schedule; give a single time"),
        (
            ("--until", "2026-03-02 11:00"),
            "2026-03-02 11:00 UTC is in the past: give a time in the future",
        ),
        (("--note", "x" * 501), "the note has 501 characters; the maximum is 500"),
    ],
)
def test_a_pause_that_cannot_be_is_refused(fleet: Fleet, arguments: tuple[str, ...], message: str):
    schedule = fleet.schedule(fleet.agent())
    assert refused("pause", "main", *arguments) == message
    assert state_of(schedule) == "active"


def test_a_second_pause_keeps_the_first_note_and_says_so(fleet: Fleet):
    schedule = fleet.schedule(fleet.agent())
    do("pause", "main", "--note", "first")
    again = do("pause", "main", "--note", "second")
    assert (again.code, again.out) == (0, "reporter/main was already paused\n")
    schedule.refresh_from_db()
    assert schedule.pause_note == "first"


@pytest.mark.parametrize(
    ("verb", "message"),
    [
        ("pause", "reporter/main is canceled: only an active schedule can be paused"),
        ("resume", "reporter/main is canceled: only a paused schedule can be resumed"),
        ("cancel", "main was canceled already"),
    ],
)
def test_what_is_over_is_left_alone(fleet: Fleet, verb: str, message: str):
    fleet.schedule(fleet.agent(), state="canceled")
    assert refused(verb, "main") == message


def test_a_paused_schedule_with_a_pending_firing_does_not_fire(fleet: Fleet):
    """Behaviour ge8."""
    schedule = fleet.schedule(fleet.agent())
    fleet.firing(schedule)
    do("pause", "main")
    firings.decide_firings(at(1))
    due.claim_due_schedules(at(hours=1))
    assert list(Firing.objects.values_list("outcome", "reason")) == [("skipped", "paused")]
    assert not WorkItem.objects.exists()


def test_a_resumed_schedule_goes_on_with_its_next_fire_not_at_once(fleet: Fleet):
    """Behaviour ar7."""
    schedule = fleet.schedule(fleet.agent(), "0 * * * *", state="paused", next_fire_at=at(hours=-3))
    said = do("resume", "main")
    assert said.out == "reporter/main resumed, next fire Mon 02 Mar 2026 13:00 UTC (in 60 min)\n"
    assert state_of(schedule) == "active"
    assert due.claim_due_schedules(NOON) == 0


def test_a_resumed_one_shot_whose_time_came_meanwhile_fires_with_the_next_tick(fleet: Fleet):
    """Behaviour ar8."""
    schedule = fleet.schedule(
        fleet.agent(),
        "at 2026-03-02T11:00:00Z",
        one_shot=True,
        state="paused",
        next_fire_at=at(hours=-1),
    )
    assert do("resume", "main").out.endswith("next fire Mon 02 Mar 2026 12:00 UTC (now)\n")
    assert due.claim_due_schedules(at(1)) == 1
    assert schedule.firings.count() == 1


def test_a_resume_may_fire_at_once(fleet: Fleet):
    schedule = fleet.schedule(fleet.agent(), "0 * * * *", state="paused", next_fire_at=at(hours=1))
    do("resume", "main", "--now")
    schedule.refresh_from_db()
    assert schedule.next_fire_at == NOON


def test_a_schedule_that_was_not_paused_says_so(fleet: Fleet):
    fleet.schedule(fleet.agent(), next_fire_at=at(hours=1))
    said = do("resume", "main")
    assert said.out.startswith("reporter/main was not paused, next fire ")


def test_json_says_whether_anything_changed(fleet: Fleet):
    fleet.schedule(fleet.agent(), next_fire_at=at(hours=1))
    paused = do("pause", "main", "--json").json
    assert (paused["changed"], paused["schedule"]["state"]) == (True, "paused")
    assert do("pause", "main", "--json").json["changed"] is False
    resumed = do("resume", "main", "--json").json
    assert (resumed["changed"], resumed["schedule"]["state"]) == (True, "active")


# --- cancel ---------------------------------------------------------------------------------


def test_a_canceled_schedule_calls_off_what_waits_and_says_how_much(durable_fleet: Fleet):
    """Behaviour ge9."""
    agent = durable_fleet.agent()
    schedule = durable_fleet.schedule(agent, overlap="queue")
    durable_fleet.enqueue(agent)
    durable_fleet.fire(schedule)
    durable_fleet.fire(schedule, at(1))
    durable_fleet.firing(schedule, at(2))
    said = do("cancel", "main")
    assert said.out == "reporter/main canceled; queued work items dropped: 3\n"
    assert (state_of(schedule), schedule.next_fire_at) == ("canceled", None)
    assert work_states(agent) == ["admitted", "dropped", "dropped"]
    assert not Firing.objects.filter(outcome="").exists()


def test_a_run_that_goes_on_is_left_to_end_and_named(durable_fleet: Fleet):
    schedule = durable_fleet.schedule(durable_fleet.agent())
    durable_fleet.fire(schedule)
    run_id = durable_fleet.start(WorkItem.objects.get()).run_id
    said = do("cancel", "main", "--json")
    assert (said.json["called_off"], said.json["schedule"]["state"]) == (0, "canceled")
    assert said.err == f"run {run_id} continues (stop it with manage.py stop run:{run_id})\n"


def test_a_schedule_of_a_file_is_not_canceled_and_the_error_names_the_file(fleet: Fleet):
    schedule = fleet.schedule(fleet.agent(), source="file")
    said = do("cancel", "main")
    assert said.code == 1
    assert "main is defined in agents/reporter/SKILL.md" in said.err
    schedule.refresh_from_db()
    assert schedule.state == "active"


# --- retry ----------------------------------------------------------------------------------


def test_a_retry_enqueues_the_last_failed_work(durable_fleet: Fleet):
    """Behaviour ge10."""
    agent = durable_fleet.agent()
    schedule = durable_fleet.schedule(
        agent, "at 2026-03-02T12:00:00Z", one_shot=True, prompt="count the sheep"
    )
    due.claim_due_schedules(NOON)
    firings.decide_firings(NOON)
    job = durable_fleet.start(WorkItem.objects.get())
    durable_fleet.finish(job, "failed", exit_code=3)
    assert state_of(schedule) == "failed"
    said = do("retry", "main", "--json")
    item = WorkItem.objects.get(pk=said.json["work_item"])
    assert (item.prompt, item.state, said.json["run"]) == (
        "count the sheep",
        "admitted",
        item.runs.get().pk,
    )
    assert state_of(schedule) == "active"
    durable_fleet.finish(durable_fleet.start(item))
    assert state_of(schedule) == "completed"


def test_there_must_be_something_to_retry(fleet: Fleet):
    fleet.schedule(fleet.agent())
    assert refused("retry", "main") == (
        "no work of main failed and no firing was skipped: nothing to retry"
    )
