"""Reads one line of a rules file from left to right: words, quoted texts, agents, targets."""

import re
from collections.abc import Collection

from agents_app.names import agent_name_problem, closest
from agents_app.rules.language.rule import Targets
from agents_app.triggers import excerpt

MAX_LINE_LENGTH = 10_000
MAX_NAME_LENGTH = 100
AGENT_NAME = "the name of an agent"
IDLE = "{idle}"

_BLANKS = " \t"
_BOM = "\ufeff"
# Characters that a database or a terminal does not accept; a tab counts as a blank.
_UNUSABLE = re.compile("[\x00-\x08\x0a-\x1f\x7f-\x9f\ud800-\udfff]")
# `surrogateescape` decodes bytes that are not UTF-8 to this range.
_UNDECODED_BYTES = range(0xDC80, 0xDD00)
_MAX_SHOWN_CHARACTERS = 200

NAME = re.compile(r"\[([^\[\]]*)\]")
WORD = re.compile(rf"[^{_BLANKS}]+")
QUOTED = re.compile(r'"((?:[^"\\]|\\.)*)"')
_ESCAPED = re.compile(r'\\(["\\])')
_AGENT = re.compile(r'[^ \t,()"]+')
_COMMA = re.compile(",")


class RuleError(Exception):
    """One line that is not a valid rule; programs read `code`, people read the sentence.

    `line` and `column` are counted from 1, as in editors. `raw` is the line, safe in a log, a
    database and a terminal.
    """

    def __init__(
        self, code: str, line: int, column: int, problem: str, expected: str, raw: str
    ) -> None:
        self.code = code
        self.line = line
        self.column = column
        self.problem = problem
        self.expected = expected
        self.raw = raw
        super().__init__(f"line {line}, column {column}: {problem} (expected {expected})")


class RuleLineReader:
    """A line without its comment, and the position up to which it has been read."""

    def __init__(self, text: str, number: int, longest: int | None = MAX_LINE_LENGTH) -> None:
        self.number = number
        self.text = self._written = text.removeprefix(_BOM if number == 1 else "").rstrip("\r")
        self.at = 0
        self._check_characters_and_length(longest)
        self.text = _without_comment(self.text)

    @property
    def word(self) -> str:
        """The characters up to the next blank; empty at the end of the line."""
        self.skip_blanks()
        found = WORD.match(self.text, self.at)
        return found[0] if found else ""

    @property
    def follows_blank(self) -> bool:
        return self.at > 0 and self.text[self.at - 1] in _BLANKS

    def skip_blanks(self) -> None:
        while self.at < len(self.text) and self.text[self.at] in _BLANKS:
            self.at += 1

    def take(self, pattern: re.Pattern[str]) -> re.Match[str] | None:
        """Skip blanks and read what matches the pattern at this position, if anything."""
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
        """Read a text in double quotes; \\" and \\\\ stand for a quote and a backslash."""
        self.skip_blanks()
        found = self.take(QUOTED) if self.follows_blank else None
        if found is None:
            raise self._not_quoted(what)
        text = _ESCAPED.sub(r"\1", found[1])
        if not text.strip():
            raise self.error("empty_text", "the quotes are empty", what, at=found.start())
        return text

    def expect_end(self, after: str) -> None:
        if rest := self.word:
            problem = f'unexpected text "{excerpt(rest)}"'
            raise self.error("unexpected_text", problem, f"the end of the line after {after}")

    def error(self, code: str, problem: str, expected: str, at: int | None = None) -> RuleError:
        column = (self.at if at is None else at) + 1
        raw = printable_line(self._written)
        return RuleError(code, self.number, column, problem, expected, raw)

    def found_here(self) -> str:
        """What stands at this position, for an error message."""
        return f'found "{excerpt(self.word)}"' if self.word else "the line ends here"

    def _not_quoted(self, what: str) -> RuleError:
        if self.word.startswith('"') and QUOTED.match(self.text, self.at) is None:
            return self.error("open_quote", "the quotes are not closed", f'{what} that ends in "')
        return self.error("bad_text", self.found_here(), f"a blank and {what} in double quotes")

    def _check_characters_and_length(self, longest: int | None) -> None:
        if found := _UNUSABLE.search(self.text):
            problem, expected = _unusable(found[0])
            raise self.error("bad_character", problem, expected, at=found.start())
        if longest is not None and len(self.text) > longest:
            problem = f"the line has {len(self.text)} characters"
            raise self.error("long_line", problem, f"at most {longest}", at=longest)


# --- agents and targets ---------------------------------------------------------------------


def read_agent(line: RuleLineReader, keywords: Collection[str] = ()) -> str:
    """Read one agent name, or one of the keywords that are allowed at this position."""
    line.skip_blanks()
    start = line.at
    found = line.take(_AGENT)
    if found is None:
        raise line.error("bad_agent", line.found_here(), AGENT_NAME, start)
    name = found[0]
    if name not in keywords and agent_name_problem(name):
        problem = f'"{excerpt(name)}" is not a valid agent name'
        raise line.error("bad_agent", problem, "a-z, 0-9 and single hyphens between them", start)
    return name


def read_names(line: RuleLineReader, keywords: Collection[str] = ()) -> tuple[str, ...]:
    """Read names separated by commas; a repeated name counts once."""
    names = [read_agent(line, keywords)]
    while line.take(_COMMA):
        names.append(read_agent(line, keywords))
    return tuple(dict.fromkeys(names))


def read_targets(line: RuleLineReader) -> Targets:
    line.skip_blanks()
    start = line.at
    names = read_names(line, keywords=("all", IDLE))
    if names == ("all",):
        return "all"
    if names == (IDLE,):
        return "{idle}"
    if "all" in names or IDLE in names:
        problem = f'"all" and "{IDLE}" cannot be combined with other targets'
        raise line.error("bad_target", problem, f"all, {IDLE}, or names of agents", start)
    return names


# --- texts ----------------------------------------------------------------------------------


def unknown_word(kind: str, word: str, known: Collection[str]) -> str:
    """A problem text with a suggestion: `unknown action "sumon": did you mean "summon"?`."""
    close = closest(word, known)
    hint = f': did you mean "{close}"?' if close else ""
    return f'unknown {kind} "{excerpt(word)}"{hint}'


def printable_line(text: str) -> str:
    """The beginning of a line with control characters escaped."""
    return "".join(
        c if c.isprintable() or c == "\t" else c.encode("unicode_escape").decode()
        for c in text[:_MAX_SHOWN_CHARACTERS]
    )


def _unusable(character: str) -> tuple[str, str]:
    """The problem with a character, and what is expected instead."""
    code = ord(character)
    if code in _UNDECODED_BYTES:
        return f"the byte 0x{code - 0xDC00:02X} is not UTF-8", "a file that is saved as UTF-8"
    return f"the character U+{code:04X} cannot be used", "printable text"


def _without_comment(text: str) -> str:
    """The line up to its comment; a # within the name belongs to the name."""
    blanks = len(text) - len(text.lstrip(_BLANKS))
    name = NAME.match(text, blanks)
    return text[: _comment_start(text, name.end() if name else 0)].rstrip(_BLANKS)


def _comment_start(text: str, at: int) -> int:
    """The first # after a blank and outside quotes: `5#2` is a weekday, `#42` in quotes is text."""
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
