"""Reads the first part of a rule: `every 5m`, `at 0 9 * * 1-5`, `at 14:30`, `at Sun 00:00`."""

import re
from datetime import timedelta

from agents_app.errors import IntervalParseError, TriggerParseError
from agents_app.rules.language.line_reader import RuleError, RuleLineReader, unknown_word
from agents_app.rules.language.rule import At, Every, Trigger
from agents_app.triggers import WEEKDAYS, WHITESPACE, excerpt, parse_cron, parse_interval_trigger

# The next due time stays within the range of datetime.
MAX_DURATION = timedelta(days=36_500)
A_DURATION = "a whole number and one of s, m, h, d, such as 30s, 5m, 1h or 2d"
_A_TIME = 'a time such as "14:30" or "Sun 00:00", or five cron fields such as "0 9 * * 1-5"'

_DURATION = re.compile("[0-9]+[smhd]")
_CLOCK = re.compile("([0-9]{1,2}):([0-9]{2})")
ARROW = "=>"
_NEXT_PART = ("if", ARROW)


def read_trigger(line: RuleLineReader) -> Trigger:
    word = line.word
    if line.take_word("every"):
        return Every(read_duration(line))
    if line.take_word("at"):
        return _read_at(line)
    problem = unknown_word("trigger", word, ("every", "at")) if word else "there is no trigger"
    if word == ARROW:
        problem = "there is no trigger before =>"
    raise line.error("bad_trigger", problem, f'"every" and a duration, or "at" and {_A_TIME}')


def parse_rule_duration(text: str) -> int:
    """Seconds of a duration such as `5m`; raises a ValueError that says why it is not valid."""
    written = text.strip(WHITESPACE)
    if not _DURATION.fullmatch(written):
        raise ValueError(f'"{excerpt(text)}" is not a valid duration')
    try:
        every = parse_interval_trigger(written).every
    except IntervalParseError as error:
        why = "is zero" if error.kind == "zero" else "is too long"
        raise ValueError(f'the duration "{excerpt(text)}" {why}') from None
    if every > MAX_DURATION:
        raise ValueError(f'the duration "{excerpt(text)}" is longer than {MAX_DURATION.days} days')
    return int(every.total_seconds())


def read_duration(line: RuleLineReader) -> int:
    word = line.word
    if not word or word in _NEXT_PART:
        raise line.error("bad_duration", "the duration is missing", A_DURATION)
    try:
        seconds = parse_rule_duration(word)
    except ValueError as why:
        if ARROW in word:
            raise arrow_without_blanks(line) from None
        raise line.error("bad_duration", str(why), A_DURATION) from None
    line.take_word(word)
    return seconds


def arrow_without_blanks(line: RuleLineReader) -> RuleError:
    at = line.at + line.word.index(ARROW)
    return line.error("bad_arrow", "there is no blank beside =>", "a blank on both sides", at)


def _read_at(line: RuleLineReader) -> At:
    line.skip_blanks()
    start, words = line.at, []
    while (word := line.word) and word not in _NEXT_PART:
        if ARROW in word:
            raise arrow_without_blanks(line)
        words.append(word)
        end = line.at + len(word)
        line.at = end
    if not words:
        raise line.error("bad_time", 'the time after "at" is missing', _A_TIME, start)
    if len(words) <= 2:
        return At(_shorthand(line, start, words))
    return At(_cron(line, start, line.text[start:end]))


def _shorthand(line: RuleLineReader, start: int, words: list[str]) -> str:
    """The cron expression of `14:30`, optionally after a day of the week in any case."""
    *days, clock = words
    if words[0].startswith("@"):
        return _cron(line, start, " ".join(words))
    if days and days[0].lower() not in WEEKDAYS:
        problem = f'"{excerpt(days[0])}" is not a day of the week'
        raise line.error("bad_time", problem, "Sun, Mon, Tue, Wed, Thu, Fri or Sat", start)
    found = _CLOCK.fullmatch(clock)
    if found is None or int(found[1]) > 23 or int(found[2]) > 59:
        at = line.text.rindex(clock, start, line.at)
        problem = f'"{excerpt(clock)}" is not a time of day'
        raise line.error("bad_time", problem, "00:00 to 23:59, or five cron fields", at)
    weekday = str(WEEKDAYS.index(days[0].lower())) if days else "*"
    return f"{int(found[2])} {int(found[1])} * * {weekday}"


def _cron(line: RuleLineReader, start: int, text: str) -> str:
    try:
        trigger = parse_cron(text)
    except TriggerParseError as error:
        # The cron parser's message without the expression in front: the line is shown anyway.
        problem = error.reason.partition('": ')[2] or error.reason
        at = start + (error.position or 0)
        raise line.error("bad_cron", problem, _A_TIME, at) from None
    return " ".join(trigger.expression.split())
