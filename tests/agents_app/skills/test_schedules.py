import pytest

from agents_app.skills.specs import ScheduleSpec
from tests.agents_app.skills.reading import agent, problem, problems


def schedule(*lines: str) -> ScheduleSpec:
    spec = agent("schedules:\n  main:\n    " + "\n    ".join(lines))
    (only,) = spec.schedules
    return only


@pytest.mark.parametrize("text", ["15m", "1.5h", "@daily", "0 9 * * 1-5", "*/5 * * * *"])
def test_a_plain_schedule_is_called_default_and_has_every_default(text):
    assert agent(f"schedule: '{text}'").schedules == (
        ScheduleSpec(
            name="default",
            expression=text,
            prompt="",
            timezone=None,
            overlap="skip",
            catch_up="last",
            catch_up_window_seconds=3600,
            jitter_percent=0,
            jitter_seconds=0,
            enabled=True,
        ),
    )


def test_an_interval_and_a_cron_schedule_are_read():
    assert schedule("type: interval", "interval: 5m").expression == "5m"
    assert schedule("type: cron", "expression: '@hourly'").expression == "@hourly"
    assert schedule("type: cron", "cron: 0 9 * * *").expression == "0 9 * * *"


@pytest.mark.parametrize("kind", ["webhook", "chat"])
def test_a_schedule_that_events_start_is_kept_without_a_time(kind):
    """Guard: files of herdctl have such schedules. Without the types the agent is refused."""
    spec = schedule(f"type: {kind}", "prompt: Look.", "jitter: 0")
    assert (spec.expression, spec.prompt, spec.overlap) == (f"@{kind}", "Look.", "skip")
    assert schedule(f"type: {kind}", "interval: 5m").expression == f"@{kind}"


def test_the_type_may_be_left_out():
    assert schedule("interval: 5m").expression == "5m"
    assert schedule("expression: 0 9 * * *").expression == "0 9 * * *"


@pytest.mark.parametrize(
    ("line", "field", "value"),
    [
        ("prompt: Look around.", "prompt", "Look around."),
        ("timezone: Europe/Berlin", "timezone", "Europe/Berlin"),
        ("overlap: queue_one", "overlap", "queue_one"),
        ("overlap: queue", "overlap", "queue"),
        ("overlap: cancel_other", "overlap", "cancel_other"),
        ("catch_up: all", "catch_up", "all"),
        ("catchUp: skip", "catch_up", "skip"),
        ("catch_up_window: 2h", "catch_up_window_seconds", 7200),
        ("catchUpWindow: 90", "catch_up_window_seconds", 90),
        ("jitter: 5", "jitter_percent", 5),
        ("jitter: 2.5%", "jitter_percent", 2.5),
        ("jitter: 30s", "jitter_seconds", 30),
        ("enabled: false", "enabled", False),
        ("enabled: no", "enabled", False),
    ],
)
def test_a_policy_of_a_schedule_is_read(line, field, value):
    assert getattr(schedule("interval: 5m", line), field) == value


def test_one_schedule_and_several_go_together():
    spec = agent("schedule: 5m\nschedules: {night: {cron: '@daily'}}")
    assert [s.name for s in spec.schedules] == ["default", "night"]


def test_the_zone_of_the_agent_is_that_of_its_schedules_unless_they_name_one():
    spec = agent(
        "timezone: Asia/Tokyo\nschedule: 5m\nschedules: {a: {interval: 5m, timezone: UTC}}"
    )
    assert [s.timezone for s in spec.schedules] == ["Asia/Tokyo", "UTC"]


@pytest.mark.parametrize(
    ("lines", "reason"),
    [
        (["type: interval"], "3: main: needs 'interval' (for example 5m)"),
        (["type: cron"], "3: main: needs 'expression' (for example \"0 9 * * 1-5\")"),
        (["prompt: x"], "3: main: needs 'interval' (for example 5m) or 'expression'"),
        (
            ["type: mail"],
            "4: main.type: must be 'interval', 'cron', 'webhook' or 'chat', not 'mail'",
        ),
        (
            ["type: [cron]"],
            "4: main.type: must be 'interval', 'cron', 'webhook' or 'chat', not a list",
        ),
        (["expression: '@webhook'"], "4: main.expression: "),
        (["interval: 5m", "cron: '@daily'"], "5: main.expression: cannot be combined with"),
        (["interval: 5.5m"], "4: main.interval: Decimal values are not supported"),
        (["interval: 300"], "4: main.interval: must be text such as 15m, not 300"),
        (["interval: 0m"], "4: main.interval: Zero interval is not allowed"),
        (["cron: 0 0 30 2 *"], "4: main.expression: "),
        (["type: cron", "cron: 5m"], "5: main.expression: "),
        (["interval: 5m", "timezone: Nowhere"], '5: main.timezone: unknown time zone "N'),
        (["interval: 5m", "overlap: queu"], "5: main.overlap: must be 'skip', 'queue_on"),
        (["interval: 5m", "catch_up: no"], "5: main.catch_up: must be 'skip', 'last' or"),
        (["interval: 5m", "catch_up_window: x"], "5: main.catch_up_window: invalid durat"),
        (["interval: 5m", "jitter: 11"], "5: main.jitter: must be 0 to 10 percent or a d"),
        (["interval: 5m", "jitter: x%"], "5: main.jitter: must be 0 to 10 percent or a d"),
        (["interval: 5m", "jitter: often"], '5: main.jitter: invalid duration "often"'),
        (["cron: '@daily'", "jitter: 5%"], "5: main.jitter: a percentage needs an interv"),
        (["interval: 5m", "enabled: maybe"], "5: main.enabled: must be true or false, no"),
        (["interval: 5m", "prompt: [x]"], "5: main.prompt: must be text, not a list"),
        (["interval: 5m", "promt: x"], "5: main.promt: unknown field; did you mean 'prom"),
        (["interval: 5m", "name: x"], "5: main.name: unknown field"),
    ],
)
def test_a_schedule_that_cannot_be_used_is_refused_with_its_line(lines, reason):
    shown = problem(schedule, *lines).replace(": schedules.", ": ", 1)
    assert shown.startswith(f"SKILL.md:{reason}")


@pytest.mark.parametrize(
    ("written", "reason"),
    [
        ("schedule: 61 * * * *", 'schedule: cron expression "61 * * * *": minute "61"'),
        ("schedule: 0 0 9 * * *", "schedule: cron expression"),
        ("schedule: 15", "schedule: must be text such as 15m, not 15; put it in quotes"),
        ("schedule: soonish", "schedule: "),
        ("schedule: [5m]", "schedule: must be text such as 15m, not a list"),
        ("schedule: " + "1," * 101 + "1 * * * *", "schedule: has 211 characters; at most 200"),
        ("schedules: 5m", "schedules: must be a table of schedules, not '5m'"),
        ("schedules: {a: 5m}", "schedules.a: must be a table, not '5m'"),
        ("schedules: {'': {interval: 5m}}", "schedules.: a schedule's name has 1 to 100"),
    ],
)
def test_a_schedule_text_that_cannot_be_used_is_refused_with_its_line(written, reason):
    assert problem(agent, f"license: MIT\n{written}").startswith(f"SKILL.md:3: {reason}")


def test_two_schedules_cannot_both_be_the_default():
    assert problem(agent, "schedule: 5m\nschedules:\n  default: {interval: 6m}") == (
        "SKILL.md:4: schedules.default: the field 'schedule' already has this name; choose another"
    )


def test_all_errors_of_a_schedule_are_reported_at_once():
    assert len(problems(schedule, "interval: x", "overlap: x", "jitter: 50", "promt: x")) == 4
