"""Reads the last part of a rule, its action: `summon forge`, `msg all "hello"`."""

import re
from collections.abc import Callable

from agents_app.rules.language.line_reader import (
    RuleLineReader,
    read_agent,
    read_targets,
    unknown_word,
)
from agents_app.rules.language.rule import (
    Action,
    Pause,
    Release,
    Resume,
    Scale,
    SendMessage,
    ShellCommand,
    Summon,
)
from agents_app.triggers import excerpt

MAX_COPIES = 10_000
_VERB = re.compile(r'[^ \t"]+')
_COPIES = re.compile(r"[0-9]{1,5}(?![^ \t])")


def read_action(line: RuleLineReader) -> Action:
    line.skip_blanks()
    start = line.at
    found = line.take(_VERB)
    verb = found[0] if found else ""
    read = _ACTIONS.get(verb)
    if read is None:
        problem = "there is no action after =>"
        if verb or line.word:
            problem = unknown_word("action", verb or line.word, _ACTIONS)
        raise line.error("bad_action", problem, ", ".join(_ACTIONS), start)
    action = read(line)
    line.expect_end(f'"{excerpt(line.text[start : line.at])}"')
    return action


def message_of(action: Action) -> str:
    """The text in which templates are filled."""
    return (action.message or "") if isinstance(action, SendMessage | Summon) else ""


def _msg(line: RuleLineReader) -> Action:
    return SendMessage(read_targets(line), line.quoted("a message"))


def _summon(line: RuleLineReader) -> Action:
    agent = read_agent(line)
    return Summon(agent, line.quoted("a message") if line.word else None)


def _release(line: RuleLineReader) -> Action:
    return Release(read_targets(line))


def _run(line: RuleLineReader) -> Action:
    return ShellCommand(line.quoted("a command"))


def _pause(line: RuleLineReader) -> Action:
    return Pause(read_targets(line))


def _resume(line: RuleLineReader) -> Action:
    return Resume(read_targets(line))


def _scale(line: RuleLineReader) -> Action:
    agent = read_agent(line)
    found = line.take(_COPIES)
    if found is None or int(found[0]) > MAX_COPIES:
        problem = f"{found[0]} is too many copies" if found else "the number of copies is missing"
        expected = f"a whole number from 0 to {MAX_COPIES}"
        raise line.error("bad_number", problem, expected, found.start() if found else None)
    return Scale(agent, int(found[0]))


_ACTIONS: dict[str, Callable[[RuleLineReader], Action]] = {
    "msg": _msg,
    "summon": _summon,
    "release": _release,
    "run": _run,
    "pause": _pause,
    "resume": _resume,
    "scale": _scale,
}
