"""`/schedule` lines: found in an output, split into phrase and message, refused with a reason."""

import time

import pytest

from agents_app.triggers import (
    ACCEPTED,
    ScheduleLine,
    ScheduleLineError,
    find_schedule_lines,
    parse_schedule_line,
)


def read(text: str) -> ScheduleLine | ScheduleLineError:
    return parse_schedule_line(text, "research", {42}.__contains__)


def created(text: str) -> tuple[str, str]:
    line = read(text)
    assert isinstance(line, ScheduleLine)
    assert (line.op, line.agent, line.id) == ("create", "research", None)
    return line.phrase, line.message


def refused(text: str) -> str:
    refusal = read(text)
    assert isinstance(refusal, ScheduleLineError)
    assert refusal.message
    return refusal.code


@pytest.mark.parametrize(
    ("line", "phrase", "message"),
    [
        ("/schedule in 1 hour: look again", "in 1 hour", "look again"),
        ("/schedule at 17:00: check", "at 17:00", "check"),
        ("/schedule at 17:00:check", "at 17:00", "check"),
        ("/schedule at 17:00:30 boxes", "at 17:00", "30 boxes"),
        ("/schedule daily : tidy: all", "daily", "tidy: all"),
        (
            "/schedule  every 5 minutes:  ask x:80 at 10:30: ok ",
            "every 5 minutes",
            "ask x:80 at 10:30: ok",
        ),
        ("/schedule 'every monday at 09:00': go", "every monday at 09:00", "go"),
        ("/schedule 0 9 * * *: go", "0 9 * * *", "go"),
        ("/schedule @daily: go", "@daily", "go"),
        ("/schedule every day at 09:00 UTC: go", "every day at 09:00 UTC", "go"),
        ("/schedule 2030-06-01T12:00:30+02:00: go", "2030-06-01T12:00:30+02:00", "go"),
        ("/schedule in 1 hour: two\nlines", "in 1 hour", "two\nlines"),
        ("/schedule\tdaily: \u00fcber", "daily", "\u00fcber"),
        # The parser has no clock: its caller refuses a time in the past.
        ("/schedule on 2020-01-01: go", "on 2020-01-01", "go"),
    ],
)
def test_the_separator_is_the_first_colon_after_a_phrase(line, phrase, message):
    assert created(line) == (phrase, message)


@pytest.mark.parametrize(
    ("line", "code"),
    [
        ("/schedule", "usage"),
        ("/schedule list all", "usage"),
        ("/schedule cancel", "usage"),
        ("/schedule cancel -1", "usage"),
        ("/schedule cancel 000", "usage"),
        ("/schedule cancel 42 43", "usage"),
        ("/schedule cancel \uff14\uff12", "usage"),
        ("/schedule pause 43", "not_found"),
        ("/schedule cancel 99999999999999999999", "not_found"),
        ("/schedule :", "empty_phrase"),
        ('/schedule "": go', "empty_phrase"),
        ("/schedule daily:  ", "empty_message"),
        ("/schedule in 5 minutes go", "missing_separator"),
        ("/schedule at 17:00 go", "missing_separator"),
        ("/schedule when it rains: go", "bad_phrase"),
        ("/schedule at 25:00: go", "bad_phrase"),
        ("/schedule at 9: go", "bad_phrase"),
        ("/schedules list", "not_a_command"),
        (" /schedule list", "not_a_command"),
        ("please /schedule list", "not_a_command"),
        ("", "not_a_command"),
    ],
)
def test_a_line_that_cannot_be_followed_is_refused_with_a_code(line, code):
    assert refused(line) == code


def test_a_bad_phrase_is_explained_with_all_that_is_accepted():
    refusal = read("/schedule every funday at 09:00: go")
    assert isinstance(refusal, ScheduleLineError)
    assert '"funday" (character 7)' in refusal.message
    assert refusal.accepted == ACCEPTED


@pytest.mark.parametrize("op", ["cancel", "pause", "resume"])
def test_a_schedule_is_named_by_its_number(op):
    assert (
        read(f"/schedule {op} 42")
        == read(f"/schedule {op.upper()}  #042 ")
        == ScheduleLine(op, id=42)
    )


def test_only_a_number_that_a_row_could_have_is_looked_up():
    asked: list[int] = []

    def exists(number: int) -> bool:
        asked.append(number)
        return False

    for digits in ("9" * 18, "9" * 19, "9" * 5000):
        found = parse_schedule_line(f"/schedule cancel {digits}", "research", exists)
        assert isinstance(found, ScheduleLineError)
        assert found.code == "not_found"
    assert asked == [int("9" * 18)]


def test_the_list_is_asked_for_in_any_case():
    assert read("/schedule list") == read("/schedule LIST ") == ScheduleLine("list")


OUTPUT = """I will look again.
/schedule in 1 hour: look
 /schedule in 2 hours: indented
> /schedule in 3 hours: quoted
```text
/schedule in 4 hours: fenced
```
/schedule list\r
~~~~
/schedule in 5 hours: fenced
```
~~~
/schedule in 6 hours: still fenced
~~~~~
/schedules
``` and `this` is no fence
/schedule cancel 42
```
/schedule in 7 hours: in a block that is never closed"""


def test_writs_start_a_line_outside_fenced_blocks():
    assert find_schedule_lines(OUTPUT) == [
        "/schedule in 1 hour: look",
        "/schedule list",
        "/schedule cancel 42",
    ]


@pytest.mark.parametrize("filling", [":", "1:", "a", " ", "in 5 minutes:", "`"])
def test_a_long_line_is_read_at_once(filling):
    started = time.process_time()
    text = "/schedule " + filling * 1_000_000
    read(text)
    find_schedule_lines(text)
    assert time.process_time() - started < 1
