"""Reads a text word by word with positions, and shortens texts for messages."""

import re

from agents_app.errors import TriggerParseError

WHITESPACE = " \t\n\r\f\v"
# Far above any real text: a cron expression with all values of all fields has under 400.
MAX_LENGTH = 1000
WORD = re.compile(rf"[^{WHITESPACE}]+")

_SHOWN = 80
_WORD_OR_COMMA = re.compile(rf"[^{WHITESPACE},]+|,")


def split_words(text: str) -> list[str]:
    """Split at ASCII whitespace only: a no-break space is a typing error, not a separator."""
    return WORD.findall(text)


def excerpt(text: str) -> str:
    """The beginning of a text with control characters escaped, for messages."""
    shown = text.strip(WHITESPACE)[:_SHOWN]
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in shown)


class WordReader:
    """The words of a phrase in lower case, and the position of the next one."""

    def __init__(self, text: str) -> None:
        self.text = text
        self._words = list(_WORD_OR_COMMA.finditer(text))
        self._index = 0

    @property
    def word(self) -> str:
        """The next word; empty at the end."""
        return self._at(self._index)

    @property
    def following(self) -> str:
        return self._at(self._index + 1)

    def skip(self, count: int = 1) -> None:
        self._index += count

    def take(self, *options: str) -> str:
        """Read the next word if it is one of these, else return empty."""
        word = self.word
        if word not in options:
            return ""
        self.skip()
        return word

    def expect_end(self) -> None:
        if not self.word:
            return
        before = " ".join(word[0] for word in self._words[: self._index])
        raise self.error(f'nothing can follow "{excerpt(before)}"; remove the rest')

    def error(self, reason: str, *, ahead: int = 0) -> TriggerParseError:
        """An error at the next word or `ahead` words later, or at the end of the text."""
        index = self._index + ahead
        if index < len(self._words):
            position = self._words[index].start()
            place = f'"{excerpt(self._words[index][0])}" (character {position + 1})'
        else:
            position, place = len(self.text.rstrip(WHITESPACE)), "its end"
        message = f'cannot read "{excerpt(self.text)}" at {place}: {reason}'
        return TriggerParseError(message, text=self.text, position=position)

    def _at(self, index: int) -> str:
        return self._words[index][0].lower() if index < len(self._words) else ""
