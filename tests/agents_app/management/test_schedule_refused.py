"""What cannot be scheduled is refused with what is wrong and what to do, and nothing is saved."""

import pytest

from agents_app.cli.command import DroverCommand
from agents_app.models import Agent, Schedule
from tests.agents_app.fleet import NOON, Fleet
from tests.agents_app.management.calling import Said, call


@pytest.fixture(autouse=True)
def at_noon(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(DroverCommand, "now", NOON)


def create(*arguments: str) -> Said:
    return call("schedule", "create", "reporter", *arguments)


def refused(*arguments: str) -> str:
    """The first line of what is said; nothing was saved."""
    before = Schedule.objects.count()
    said = create(*arguments)
    assert (said.code, said.out) == (1, "")
    assert Schedule.objects.count() == before
    return said.err.splitlines()[0]


WAYS = "--at, --in, --every, --cron, or a text such as 'every monday at 09:00'"


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((), f"no schedule given: use {WAYS}"),
        (("--at", "17:00", "--in", "1h"), f"--at and --in cannot be combined: use one of {WAYS}"),
        (("15m", "--cron", "@daily"), f"--cron and a text cannot be combined: use one of {WAYS}"),
        (("--at", "15m"), "--at '15m': this is a recurring schedule; give a single time"),
        (
            ("--cron", "every day"),
            "--cron 'every day': write five fields, such as '0 9 * * 1-5', or @daily",
        ),
        (
            ("--in", "soon"),
            '--in: invalid duration "soon": '
            "write a number and a unit, such as 30s, 10m, 1.5h or 1d",
        ),
        (("--every", "0.5s"), "--every '0.5s': give whole seconds"),
        (("--in", "0.5s"), "--in '0.5s': give whole seconds"),
        (("@daily", "--zone", "Berlin"), 'unknown time zone "Berlin": did you mean Europe/Berlin?'),
        (
            ("15m", "--jitter", "x%"),
            "--jitter 'x%': expected a percentage, such as 5%, or a duration, such as 30s",
        ),
        (("15m", "--jitter", "11%"), "a jitter is 0 to 10 percent, or a duration"),
        (("15m", "--jitter=-1%"), "a jitter is 0 to 10 percent, or a duration"),
        (("15m", "--jitter", "nan%"), "a jitter is 0 to 10 percent, or a duration"),
        (
            ("@daily", "--jitter", "5%"),
            "a jitter in percent needs an interval; give a duration, such as 30s",
        ),
        (
            ("@daily", "--jitter", "999999d"),
            "jitter_seconds: must be from 0 to 366 days",
        ),
        (
            ("@daily", "--catch-up-window", "999999999d"),
            "catch_up_window_seconds: must be from 0 to 366 days",
        ),
        (
            ("@daily", "--anchor", "start"),
            "only an interval has an anchor: this schedule names its times itself",
        ),
        (
            ("@daily", "--pause-after-failures", "many"),
            "--pause-after-failures 'many': expected a whole number from 0 to 1000000",
        ),
        (
            ("@daily", "--name", "x" * 101),
            "name: Ensure this value has at most 100 characters (it has 101).",
        ),
    ],
)
def test_what_cannot_be_used_is_refused_with_what_to_do(
    fleet: Fleet, arguments: tuple[str, ...], message: str
):
    fleet.agent()
    assert refused(*arguments) == message


@pytest.mark.parametrize(
    "arguments",
    [("--at", "2020-01-01 12:00"), ("--at", "2026-03-02 12:00"), ("on", "2020-01-01")],
)
def test_a_time_that_is_over_is_refused(fleet: Fleet, arguments: tuple[str, ...]):
    """Behaviour ge12."""
    fleet.agent()
    message = refused(*arguments, "--zone", "UTC")
    assert message.startswith("Schedule time is in the past: ")
    assert message.endswith("UTC; give a time in the future")


@pytest.mark.parametrize("arguments", [("sometimes",), ("--every", "blue moon"), ("--at", "25:00")])
def test_a_text_that_is_not_understood_is_answered_with_the_accepted_forms(
    fleet: Fleet, arguments: tuple[str, ...]
):
    fleet.agent()
    assert refused(*arguments).startswith("cannot read ")
    lines = create(*arguments).err.splitlines()
    assert lines[1] == "Accepted:"
    assert "  15m | 1.5h" in lines and "  0 9 * * 1-5 | @daily | @reboot" in lines


def test_a_policy_that_does_not_exist_is_refused_with_those_that_do(fleet: Fleet):
    fleet.agent()
    message = refused("@daily", "--overlap", "panic")
    assert "'skip', 'queue_one', 'queue', 'cancel_other'" in message


def test_an_agent_whose_directory_is_gone_gets_no_schedule(fleet: Fleet):
    fleet.agent(removed_at=NOON)
    assert refused("@daily") == "the directory of reporter was removed: restore it first"


def test_an_unknown_agent_is_refused(fleet: Fleet):
    fleet.agent("reporters")
    assert refused("@daily").startswith("there is no agent 'reporter'; did you mean 'reporters'?")
    assert Agent.objects.count() == 1


def test_a_name_that_is_in_use_is_refused(fleet: Fleet):
    """Behaviour ge11."""
    fleet.agent()
    create("@daily", "--name", "mine")
    assert refused("@hourly", "--name", "mine") == (
        "reporter has a schedule 'mine' already (active): "
        "choose another name, or cancel the existing schedule first"
    )
    assert Schedule.objects.get().expression == "0 0 * * *"
