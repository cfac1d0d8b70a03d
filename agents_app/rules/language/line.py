"""One line of a rules file, read from left to right; what its words mean is the grammar's."""

import re

from agents_app.rules.language.errors import RuleError
from agents_app.triggers import excerpt

LONGEST_LINE = 10_000
LONGEST_NAME = 100

_BLANKS = " \t"
_BOM = "\ufeff"
# Neither a database nor a terminal takes them; a tab is a blank.
_UNUSABLE = re.compile("[\x00-\x08\x0a-\x1f\x7f-\x9f\ud800-\udfff]")
# As which `surrogateescape` reads bytes that are not UTF-8.
_BYTES = range(0xDC80, 0xDD00)
_SHOWN = 200

NAME = re.compile(r"\[([^\[\]]*)\]")
WORD = re.compile(rf"[^{_BLANKS}]+")
QUOTED = re.compile(r'"((?:[^"\\]|\\.)*)"')
_ESCAPED = re.compile(r'\\(["\\])')


class RuleLineText:
    """A line and the place in it that is to be understood next; a comment at its end is gone."""

    def __init__(self, text: str, number: int, longest: int | None = LONGEST_LINE) -> None:
        self.number = number
        self.text = self._written = text.removeprefix(_BOM if number == 1 else "").rstrip("\r")
        self.at = 0
        self._refuse_what_no_line_may_hold(longest)
        self.text = _without_comment(self.text)

    @property
    def word(self) -> str:
        """What stands up to the next blank; empty at the end."""
        self.skip_blanks()
        found = WORD.match(self.text, self.at)
        return found[0] if found else ""

    @property
    def is_apart(self) -> bool:
        """A blank stands before this place."""
        return self.at > 0 and self.text[self.at - 1] in _BLANKS

    def skip_blanks(self) -> None:
        while self.at < len(self.text) and self.text[self.at] in _BLANKS:
            self.at += 1

    def take(self, pattern: re.Pattern[str]) -> re.Match[str] | None:
        """What fits the pattern right here, after blanks."""
        self.skip_blanks()
        found = pattern.match(self.text, self.at)
        if found:
            self.at = found.end()
        return found

    def take_word(self, *options: str) -> bool:
        if self.word not in options:
            return False
        self.at += len(self.word)
        return True

    def quoted(self, what: str) -> str:
        """A text in double quotes, in which \\" and \\\\ stand for a quote and a backslash."""
        self.skip_blanks()
        found = self.take(QUOTED) if self.is_apart else None
        if found is None:
            raise self._not_quoted(what)
        text = _ESCAPED.sub(r"\1", found[1])
        if not text.strip():
            raise self.error("empty_text", "the quotes are empty", what, at=found.start())
        return text

    def expect_end(self, after: str) -> None:
        if rest := self.word:
            problem = f'"{excerpt(rest)}" cannot follow here'
            raise self.error("unexpected_text", problem, f"the end of the line after {after}")

    def error(self, code: str, problem: str, expected: str, at: int | None = None) -> RuleError:
        column = (self.at if at is None else at) + 1
        return RuleError(code, self.number, column, problem, expected, shown(self._written))

    def _not_quoted(self, what: str) -> RuleError:
        word = self.word
        if word.startswith('"') and QUOTED.match(self.text, self.at) is None:
            return self.error("open_quote", "the quotes are not closed", f'{what} that ends in "')
        here = f'"{excerpt(word)}" stands here' if word else "the line ends here"
        return self.error("bad_text", here, f"a blank and {what} in double quotes")

    def _refuse_what_no_line_may_hold(self, longest: int | None) -> None:
        if found := _UNUSABLE.search(self.text):
            problem, expected = _unusable(found[0])
            raise self.error("bad_character", problem, expected, at=found.start())
        if longest is not None and len(self.text) > longest:
            problem = f"the line has {len(self.text)} characters"
            raise self.error("long_line", problem, f"at most {longest}", at=longest)


def _unusable(character: str) -> tuple[str, str]:
    """What is wrong with it, and what is expected instead."""
    code = ord(character)
    if code in _BYTES:
        return f"the byte 0x{code - 0xDC00:02X} is not UTF-8", "a file that is saved as UTF-8"
    return f"the character U+{code:04X} cannot be used", "printable text"


def shown(text: str) -> str:
    """Of a long line its beginning."""
    return "".join(
        c if c.isprintable() or c == "\t" else c.encode("unicode_escape").decode()
        for c in text[:_SHOWN]
    )


def _without_comment(text: str) -> str:
    """A # in the name is part of it."""
    blanks = len(text) - len(text.lstrip(_BLANKS))
    name = NAME.match(text, blanks)
    return text[: _comment_start(text, name.end() if name else 0)].rstrip(_BLANKS)


def _comment_start(text: str, at: int) -> int:
    """Where a # outside of quotes follows a blank: `5#2` is a weekday, `#42` in quotes is text."""
    while at < len(text):
        if text[at] == '"':
            found = QUOTED.match(text, at)
            if found is None:
                return len(text)
            at = found.end()
        elif text[at] == "#" and (at == 0 or text[at - 1] in _BLANKS):
            return at
        else:
            at += 1
    return at
