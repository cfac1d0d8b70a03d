"""Suggests a valid schedule text for an invalid one."""

import re
from collections.abc import Iterator
from difflib import get_close_matches

from agents_app.errors import TriggerParseError
from agents_app.triggers.phrase_parts import WEEKDAYS
from agents_app.triggers.when import check_phrase

# The similarity of a typing error; a guess below that would mislead.
MIN_SIMILARITY = 0.7
_WORDS = sorted(
    {
        *WEEKDAYS,
        *("every", "hourly", "daily", "weekly", "monthly", "yearly", "weekday", "weekdays"),
        *("weekend", "second", "seconds", "minute", "minutes", "hour", "hours", "day", "days"),
        *("week", "weeks", "month", "at", "in", "on", "the", "and", "next", "today", "tomorrow"),
        *("last", "other", "noon", "midnight", "each", "everyday", "fortnight"),
    }
)
_DAY = "|".join(sorted(WEEKDAYS, key=len, reverse=True))
# Applied in this order, each to the result of the previous ones.
_REWRITES = tuple(
    (re.compile(pattern), better)
    for pattern, better in (
        (r"^\*/([0-9]+) \* \* \* \*$", r"every \1 minutes"),
        (r"^0 ((?:\S+ ){4}\S+)$", r"\1"),
        (r"\beach\b", "every"),
        (r"\beveryday\b", "every day"),
        (r"\bhalf an hour\b", "30 minutes"),
        (r"\bevery other (second|minute|hour|day|week)\b", r"every 2 \1s"),
        (r"\bevery second$", "every 1 second"),
        (r"\b(?:every )?(?:fortnight|fortnightly|biweekly)\b", "every 2 weeks"),
        (r"\b(?:every |on )?weekdays\b", "every weekday"),
        (r"\b(?:every |on |on the )?weekends?\b", "every saturday and sunday"),
        (r"\bmonthly\b", "every month"),
        (r"^(?:every year|yearly|annually)$", "@yearly"),
        (r"\bon the ([0-9]{1,2})\b(?!st|nd|rd|th)", r"on the \1th"),
        (r"\b([0-9]*[02-9]?1)th\b(?<!11th)", r"\1st"),
        (r"\b([0-9]*[02-9]?2)th\b(?<!12th)", r"\1nd"),
        (r"\b([0-9]*[02-9]?3)th\b(?<!13th)", r"\1rd"),
        (rf"\b({_DAY})s\b", r"\1"),
        (rf"^(?:on )?({_DAY})\b", r"every \1"),
        (r"^(in|every) ([0-9]+)([a-z]+)", r"\1 \2 \3"),
        (r"\b([0-9]{1,2})\.([0-9]{2})\b", r"\1:\2"),
        (r"\b([0-9]{1,2}) o'?clock\b", r"\1:00"),
        (r"\bat ([0-9]{1,2})$(?<!:..)", r"at \1:00"),
        (r"(?<!at )(?<!t)\b([0-9]{1,2}(?::[0-9]{2})?(?:am|pm)|[0-9]{1,2}:[0-9]{2})$", r"at \1"),
        (r"\b([0-9]):([0-9]{2})\b", r"0\1:\2"),
    )
)


def suggest(text: str) -> str:
    """A valid text that is similar, or empty."""
    plain = " ".join(text.lower().split())
    return next((better for better in _candidates(plain) if better != text and _reads(better)), "")


def _candidates(text: str) -> Iterator[str]:
    yield _rewritten(text)
    yield _rewritten(" ".join(map(_corrected, text.split(" "))))


def _rewritten(text: str) -> str:
    for pattern, better in _REWRITES:
        text = pattern.sub(better, text)
    return text


def _corrected(word: str) -> str:
    if not word.isalpha() or word in _WORDS:
        return word
    return next(iter(get_close_matches(word, _WORDS, n=1, cutoff=MIN_SIMILARITY)), word)


def _reads(text: str) -> bool:
    try:
        check_phrase(text)
    except TriggerParseError:
        return False
    return True
