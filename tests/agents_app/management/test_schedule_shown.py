"""What people see of schedules in a terminal: lists, next fires, history, and why."""

import pytest

from agents_app.cli.command import DroverCommand
from agents_app.models import Agent, Firing, Schedule, WorkItem
from agents_app.schedules import edit
from tests.agents_app.fleet import NOON, Fleet, at
from tests.agents_app.management.calling import Said, call


@pytest.fixture(autouse=True)
def at_noon(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(DroverCommand, "now", NOON)


def see(verb: str, *arguments: str) -> Said:
    said = call("schedule", verb, *arguments)
    assert said.code == 0, said.err
    return said


def hourly(fleet: Fleet, **columns: object) -> Schedule:
    usual = {"text": "every hour on the hour", "next_fire_at": at(hours=1)}
    schedule = fleet.schedule(fleet.agent(), "0 * * * *", **usual | columns)
    Schedule.objects.update(created_at=at(hours=-5))
    schedule.refresh_from_db()
    return schedule


# --- list -----------------------------------------------------------------------------------


def test_without_any_the_list_says_what_to_do(fleet: Fleet):
    assert see("list").out == "no schedules (create one with manage.py schedule create)\n"


def test_those_that_can_fire_are_listed_first(fleet: Fleet):
    agent, other = fleet.agent(), fleet.agent("other")
    fleet.schedule(agent, name="a", state="canceled", next_fire_at=None)
    fleet.schedule(agent, name="b", state="paused", pause_note="too loud")
    fleet.schedule(agent, name="c", timezone="Europe/Berlin", next_fire_at=at(minutes=5))
    fleet.schedule(other, name="d", state="failed")
    fleet.schedule(other, name="e")
    lines = see("list").out.splitlines()
    assert [line.split()[1] for line in lines[1:]] == [
        "other/e",
        "reporter/c",
        "reporter/b",
        "other/d",
        "reporter/a",
    ]
    assert "Mon 02 Mar 2026 13:05 CET (in 5 min)" in lines[2]
    assert lines[3].endswith("too loud")


def test_a_paused_schedule_shows_no_next_fire(fleet: Fleet):
    hourly(fleet, state="paused")
    assert "in 60 min" not in see("list").out


def test_the_list_is_narrowed_by_agent_and_state(fleet: Fleet):
    for name in ("reporter", "other"):
        agent = fleet.agent(name)
        fleet.schedule(agent, name="live")
        fleet.schedule(agent, name="quiet", state="paused")
    found = see("list", "--agent", "other", "--state", "paused", "--json").json
    assert [(one["agent"], one["name"]) for one in found["schedules"]] == [("other", "quiet")]
    assert found["total"] == 1
    assert len(see("list", "--json").json["schedules"]) == 4


def test_a_long_list_is_cut_and_says_so(fleet: Fleet):
    agent = fleet.agent()
    for number in range(3):
        fleet.schedule(agent, name=f"s{number}")
    assert see("list", "--limit", "2").out.splitlines()[-1] == "1 more (--limit 3 shows all)"
    found = see("list", "--limit", "2", "--json").json
    assert (len(found["schedules"]), found["total"]) == (2, 3)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("list", "--limit", "0"), "--limit '0': expected a whole number from 1 to 100000"),
        (("next", "main", "--count", "x"), "--count 'x': expected a whole number from 1 to 1000"),
        (("history", "main", "--limit", "-1"), "--limit '-1': expected a whole number"),
        (("list", "--agent", "unknown"), "there is no agent 'unknown'"),
    ],
)
def test_a_number_or_name_that_is_none_is_refused(
    fleet: Fleet, arguments: tuple[str, ...], message: str
):
    hourly(fleet)
    said = call("schedule", *arguments)
    assert (said.code, said.out) == (1, "")
    assert said.err.startswith(message)


# --- show and next --------------------------------------------------------------------------


def test_show_tells_what_was_set_and_what_happened(fleet: Fleet):
    counts = {"fire_count": 7, "run_count": 5, "last_error": "out of sheep"}
    schedule = hourly(fleet, prompt="count\nthe sheep", jitter_seconds=30, **counts)
    lines = see("show", "main").out.splitlines()
    assert lines[0] == f"reporter/main (#{schedule.pk})"
    facts = dict(line.strip().split(":", 1) for line in lines[1:-2])
    facts = {label: text.strip() for label, text in facts.items()}
    assert facts["when"] == "every hour on the hour (0 * * * *)"
    assert facts["policies"].startswith("overlap skip, catch up last within 1 h, gap shift")
    assert facts["policies"].endswith("jitter 30 s")
    assert facts["next fire"] == "Mon 02 Mar 2026 13:00 UTC (in 60 min)"
    assert facts["counters"].startswith("5 runs, 7 fired, 0 skipped")
    assert facts["last error"] == "out of sheep"
    assert facts["prompt"] == "count the sheep"
    assert facts["next fires"] == "Mon 02 Mar 2026 13:00 UTC (in 60 min)"


def test_show_as_json_has_the_columns_and_the_next_fires(fleet: Fleet):
    hourly(fleet, timezone="Europe/Berlin")
    value = see("show", "main", "--json").json
    assert (value["expression"], value["overlap"]) == ("0 * * * *", "skip")
    assert [fire["local"] for fire in value["next_fires"]] == [
        "2026-03-02T14:00:00+01:00",
        "2026-03-02T15:00:00+01:00",
        "2026-03-02T16:00:00+01:00",
    ]


def test_next_shows_as_many_as_asked_for_and_the_next_clock_change(fleet: Fleet):
    fleet.schedule(
        fleet.agent(), "30 2 * * *", timezone="Europe/Berlin", gap="skip", next_fire_at=at(hours=14)
    )
    out = see("next", "main", "--count", "2").out
    assert "Tue 03 Mar 2026 03:00 CET" in out and "Wed 04 Mar 2026 02:30 CET" in out
    assert "Thu 05 Mar" not in out
    assert "clocks go forward 1 h at 02:00 on Sun 29 Mar 2026:" in out
    assert "02:30 does not exist that day and is skipped." in out
    value = see("next", "main", "--json").json
    assert len(value["fires"]) == 5
    assert value["clock_change"]["note"] == "02:30 does not exist that day and is skipped."


def test_next_of_a_paused_schedule_is_what_a_resume_would_bring(fleet: Fleet):
    hourly(fleet, state="paused", next_fire_at=at(hours=-3))
    lines = see("next", "main", "--count", "1").out.splitlines()
    assert lines[0] == "paused; if resumed now, the schedule fires:"
    assert lines[2].startswith("Mon 02 Mar 2026 13:00 UTC")


def test_a_completed_schedule_has_no_next_fire(fleet: Fleet):
    hourly(fleet, state="completed", next_fire_at=None)
    assert see("next", "main").out == "The schedule is completed: no more fires.\n"


def test_an_overdue_fire_is_shown_as_such(fleet: Fleet):
    hourly(fleet, next_fire_at=at(minutes=-10))
    assert "10 min ago" in see("next", "main").out


# --- history and why ------------------------------------------------------------------------


def test_history_tells_each_firing_and_what_became_of_it(durable_fleet: Fleet):
    schedule = hourly(durable_fleet)
    durable_fleet.fire(schedule)
    job = durable_fleet.start(WorkItem.objects.get())
    durable_fleet.finish(job, "failed", exit_code=3, error="out of sheep")
    durable_fleet.firing(schedule, at(hours=-1))
    Firing.objects.filter(due_at=at(hours=-1)).update(
        outcome="skipped", reason="missed", recorded_at=NOON
    )
    lines = see("history", "main").out.splitlines()
    assert lines[0].split() == ["DUE", "OUTCOME", "LATE", "REASON", "RESULT"]
    assert lines[1].startswith("Mon 02 Mar 2026 12:00 UTC  started")
    assert lines[1].endswith(f"run {job.run_id} failed: out of sheep")
    assert "skipped  1 h   Drover did not run at that time" in lines[2]


def test_history_as_json_has_the_run(durable_fleet: Fleet):
    schedule = hourly(durable_fleet, timezone="Europe/Berlin")
    durable_fleet.fire(schedule)
    job = durable_fleet.start(WorkItem.objects.get())
    durable_fleet.finish(job, "failed", exit_code=3)
    edit.retry(schedule, "ann", NOON)
    value = see("history", "main", "--json").json
    assert (value["agent"], value["name"]) == ("reporter", "main")
    [firing] = value["firings"]
    assert (firing["due_at"], firing["local"]) == (
        "2026-03-02T12:00:00Z",
        "2026-03-02T13:00:00+01:00",
    )
    assert (firing["outcome"], firing["reason"], firing["late_seconds"]) == ("started", "", 0)
    work = firing["work"]
    assert (work["run"], work["run_state"], work["exit_code"]) == (job.run_id, "failed", 3)
    assert value["asked_again"][0]["asked_by"] == "ann, retry of schedule main"


def test_firings_of_all_schedules_are_listed_newest_first(durable_fleet: Fleet):
    assert see("firings").out == "no firings\n"
    schedule = hourly(durable_fleet)
    durable_fleet.fire(schedule)
    durable_fleet.fire(schedule, at(hours=1))  # skipped: the first run is unfinished
    lines = see("firings").out.splitlines()
    assert lines[0].split() == ["SCHEDULE", "DUE", "OUTCOME", "LATE", "REASON", "RESULT"]
    assert [line.split()[0] for line in lines[1:]] == ["reporter/main"] * 2
    assert "skipped" in lines[1] and "started" in lines[2]
    [skipped] = see("firings", "--outcome", "skipped", "--json").json["firings"]
    assert (skipped["agent"], skipped["name"]) == ("reporter", "main")
    assert (skipped["outcome"], skipped["reason"]) == ("skipped", "already_running")
    durable_fleet.agent("other")
    assert see("firings", "--agent", "other", "--json").json == {"firings": []}
    assert len(see("firings", "--limit", "1").out.splitlines()) == 2


def test_a_schedule_that_never_came_due_has_no_history(fleet: Fleet):
    hourly(fleet)
    assert see("history", "main").out == "no firings yet\n"
    assert see("history", "main", "--json").json["firings"] == []


def test_why_tells_the_state_the_obstacles_and_the_ledger(durable_fleet: Fleet):
    schedule = hourly(durable_fleet, skipped_count=1)
    durable_fleet.firing(schedule)
    Firing.objects.update(outcome="skipped", reason="at_capacity")
    edit.pause(schedule, "ann", NOON, "too loud")
    lines = see("why", "main").out.splitlines()
    assert lines[0] == f"reporter/main (#{schedule.pk}): The schedule is paused: it does not fire."
    assert lines[1] == "  - the schedule is paused: too loud"
    assert "0 fired, 1 skipped, 0 missed, 0 late, 0 failures in a row" in lines
    assert lines[-1].split("  ")[:2] == ["Mon 02 Mar 2026 12:00 UTC", "skipped"]
    assert "no slot was free" in lines[-1]


def test_why_as_json_is_the_explanation(fleet: Fleet):
    hourly(fleet, timezone="Europe/Berlin")
    value = see("why", "main", "--json").json
    # No beat and no worker are alive in this test.
    assert value["text"] == (
        "The schedule is active and due next at Mon 02 Mar 2026 14:00 CET, "
        "but would start no run now."
    )
    assert {obstacle["code"] for obstacle in value["obstacles"]} == {"no_beat", "no_worker"}
    assert value["counters"] == {"fired": 0, "skipped": 0, "missed": 0, "late": 0, "failures": 0}
    assert (value["next_fire_at"], value["next_fire_local"]) == (
        "2026-03-02T13:00:00Z",
        "2026-03-02T14:00:00+01:00",
    )


def test_why_at_a_time_tells_that_firing_and_its_neighbours(fleet: Fleet):
    schedule = hourly(fleet)
    for hour, reason in ((-1, "paused"), (-2, "at_capacity")):
        fleet.firing(schedule, at(hours=hour))
        Firing.objects.filter(outcome="").update(outcome="skipped", reason=reason)
    lines = see("why", "main", "--at", "11:00").out.splitlines()
    assert lines[0].endswith(
        "Due at Mon 02 Mar 2026 11:00 UTC: skipped, "
        "the schedule, its agent or the scheduler was paused."
    )
    assert lines[1] == ("  previous firing: Mon 02 Mar 2026 10:00 UTC: skipped, no slot was free")
    assert lines[2] == "  next fire: Mon 02 Mar 2026 13:00 UTC (in 60 min)"


def test_why_at_a_time_at_which_nothing_was_due(fleet: Fleet):
    schedule = hourly(fleet)
    fleet.firing(schedule, at(hours=-1))
    value = see("why", "main", "--at", "30 minutes ago", "--json").json
    assert (value["text"], value["firing"]) == (
        "The schedule was not due at that time.",
        None,
    )
    assert (value["asked_at"], value["before"]["due_at"]) == (
        "2026-03-02T11:30:00Z",
        "2026-03-02T11:00:00Z",
    )


def test_words_of_others_cannot_write_to_the_terminal(fleet: Fleet):
    hourly(fleet, name="\x1b[2Jx", text="\x1b]0;owned\x07", prompt="\x1b[31m")
    for verb in ("show", "next", "why", "history"):
        assert "\x1b" not in see(verb, f"#{Schedule.objects.get().pk}").out
    assert "\x1b" not in see("list").out


# --- by the name of an agent --------------------------------------------------------------------


@pytest.mark.parametrize("verb", ["why", "show", "history", "next"])
def test_the_name_of_an_agent_with_one_schedule_is_enough(fleet: Fleet, verb: str):
    schedule = hourly(fleet)
    fleet.schedule(schedule.agent, name="old", state="canceled", next_fire_at=None)
    assert see(verb, "reporter").out == see(verb, "main").out
    assert see(verb, "reporter", "--json").json["name"] == "main"


@pytest.mark.parametrize("verb", ["why", "show", "history", "next"])
def test_the_schedules_of_an_agent_with_several_are_listed(fleet: Fleet, verb: str):
    fleet.schedule(hourly(fleet).agent, name="nightly")
    said = see(verb, "reporter")
    assert [line.split()[1] for line in said.out.splitlines()[1:]] == [
        "reporter/main",
        "reporter/nightly",
    ]
    assert said.err == (
        f"reporter has 2 schedules: name one, as in manage.py schedule {verb} reporter/main\n"
    )
    listed = see(verb, "reporter", "--json").json["schedules"]
    assert [one["name"] for one in listed] == ["main", "nightly"]


def test_an_agent_without_schedules_is_not_taken_for_a_schedule(fleet: Fleet):
    fleet.agent()
    said = call("schedule", "why", "reporter")
    assert (said.code, said.out) == (1, "")
    assert said.err.startswith("the agent reporter has no schedules: set `schedule`")


def test_a_change_needs_the_name_of_the_schedule(fleet: Fleet):
    hourly(fleet)
    said = call("schedule", "cancel", "reporter")
    assert said.err == "'reporter' is an agent; its schedules are reporter/main\n"
    assert Schedule.objects.get().state == "active"


# --- schedules of a disabled agent --------------------------------------------------------------


@pytest.mark.parametrize(
    ("columns", "reason"),
    [
        ({"scale": 0}, "the agent's scale is 0"),
        ({"removed_at": NOON}, "the agent's directory is missing"),
    ],
)
def test_the_schedules_of_a_disabled_agent_are_shown_as_disabled(
    fleet: Fleet, columns: dict[str, object], reason: str
):
    """Guard: such a schedule is active in its row and has a next fire time, but starts no run."""
    schedule = hourly(fleet)
    Agent.objects.update(**columns)
    (line,) = see("list").out.splitlines()[1:]
    assert line.split()[1:3] == ["reporter/main", "disabled"]
    assert "in 60 min" not in line and line.endswith(reason)
    shown = see("show", "main").out
    assert f"disabled {reason}" in shown and "next fire" not in shown
    text = "The schedule is disabled with its agent: it starts no run."
    assert see("why", "main").out.startswith(f"reporter/main (#{schedule.pk}): {text}")
    assert see("next", "main").out.startswith(f"disabled: {reason}; once the agent is enabled")
    assert see("list", "--json").json["schedules"][0]["shown_state"] == "disabled"
    for verb in ("why", "history", "next"):
        assert see(verb, "main", "--json").json["shown_state"] == "disabled"
    assert see("list", "--state", "active", "--json").json["total"] == 0
    assert see("list", "--state", "disabled", "--json").json["total"] == 1


@pytest.mark.parametrize("kind", ["webhook", "chat"])
def test_next_of_a_schedule_that_never_fires_by_time_gives_only_the_reason(fleet: Fleet, kind: str):
    columns = {"state": "paused", "next_fire_at": None, "text": ""}
    fleet.schedule(fleet.agent(), f"@{kind}", name="main", **columns)
    reason = f"unsupported_type: a schedule of type {kind} never fires by time"
    assert see("next", "main").out == f"{reason}\n"
    assert see("next", "main", "--json").json["note"] == reason
