"""What a trigger means, in English: people check by it what they wrote."""

import pytest

from agents_app.triggers import (
    CronTrigger,
    IntervalTrigger,
    describe_cron,
    describe_interval,
    parse_cron,
    parse_trigger,
)


@pytest.mark.parametrize(
    ("expression", "said"),
    [
        ("* * * * *", "every minute"),
        ("*/15 * * * *", "every 15 minutes"),
        ("0,30 * * * *", "every 30 minutes"),
        ("*/7 * * * *", "every 7 minutes, anew each hour"),
        ("*/15 9-17 * * 1-5", "every 15 minutes from 09:00 to 17:59, Monday to Friday"),
        ("*/30 1,5 * * *", "every 30 minutes in the hours 01 and 05"),
        ("* 9 * * *", "every minute from 09:00 to 09:59"),
        ("30 * * * *", "every hour at :30"),
        ("0 */2 * * *", "every 2 hours at :00"),
        ("0 */5 * * *", "at 00:00, 05:00, 10:00, 15:00 and 20:00, every day"),
        ("0 9-17 * * *", "every hour from 09:00 to 17:00"),
        ("5,20 * * * *", "at :05 and :20 of every hour, every day"),
        ("0 9 * * *", "at 09:00, every day"),
        ("0 9,12,18 * * 7", "at 09:00, 12:00 and 18:00, on Sunday"),
        ("0 0 * * 0,6", "at 00:00, on Saturday and Sunday"),
        ("0 9 1,15 * *", "at 09:00, on the 1st and the 15th of the month"),
        ("0 9 22-24 * *", "at 09:00, from the 22nd to the 24th of the month"),
        ("0 9 L * *", "at 09:00, on the last day of the month"),
        ("0 9 * * 5L", "at 09:00, on the last Friday of the month"),
        ("0 9 * * MON#2,fri", "at 09:00, on Friday and on the 2nd Monday of the month"),
        ("0 9 1 * 1", "at 09:00, on the 1st of the month and also on Monday"),
        ("0 9 * 6-8 *", "at 09:00, every day, from June to August"),
        ("@yearly", "at 00:00, on the 1st of the month, in January"),
    ],
)
def test_a_cron_expression_is_described_in_words(expression: str, said: str):
    assert describe_cron(parse_cron(expression)) == said


def test_a_phrase_is_described_by_its_meaning():
    trigger = parse_trigger("every week on mon and fri at 18:30")
    assert isinstance(trigger, CronTrigger)
    assert describe_cron(trigger) == "at 18:30, on Monday and Friday"


def test_a_long_list_is_not_read_out_to_its_end():
    said = describe_cron(parse_cron("1,2,4,7,11,13,17,19,23,29 * * * *"))
    assert said == "at :01, :02, :04, :07, :11, :13, :17 and 3 more of every hour, every day"


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("15m", "every 15 minutes"),
        ("every hour", "every hour"),
        ("1.5h", "every 1 hour and 30 minutes"),
        ("every 2 days", "every 2 days"),
        ("1d", "every 24 hours"),
        ("0.25s", "every 250 milliseconds"),
    ],
)
def test_an_interval_is_described_in_words(text: str, said: str):
    trigger = parse_trigger(text)
    assert isinstance(trigger, IntervalTrigger)
    assert describe_interval(trigger) == said
