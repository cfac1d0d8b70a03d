"""The last part of a rule: what is done."""

import re
from collections.abc import Callable

from agents_app.names import closest
from agents_app.rules.language.line import RuleLineText
from agents_app.rules.language.rule import (
    Action,
    Pause,
    Release,
    Resume,
    Scale,
    Shell,
    Summon,
    Tell,
)
from agents_app.rules.language.targets import read_agent, read_targets
from agents_app.triggers import excerpt

MOST_COPIES = 10_000
_VERB = re.compile(r'[^ \t"]+')
_COPIES = re.compile(r"[0-9]{1,5}(?![^ \t])")


def read_action(line: RuleLineText) -> Action:
    line.skip_blanks()
    start = line.at
    found = line.take(_VERB)
    verb = found[0] if found else ""
    read = _ACTIONS.get(verb)
    if read is None:
        raise line.error(
            "bad_action", _unknown_action(verb or line.word), ", ".join(_ACTIONS), start
        )
    action = read(line)
    line.expect_end(f'"{excerpt(line.text[start : line.at])}"')
    return action


def _unknown_action(word: str) -> str:
    if not word:
        return "there is no action after =>"
    close = closest(word, _ACTIONS)
    return f'unknown action "{excerpt(word)}"' + (f': did you mean "{close}"?' if close else "")


def message_of(action: Action) -> str:
    """The text in which templates are filled."""
    return (action.message or "") if isinstance(action, Tell | Summon) else ""


def _tell(line: RuleLineText) -> Action:
    return Tell(read_targets(line), line.quoted("a message"))


def _summon(line: RuleLineText) -> Action:
    agent = read_agent(line)
    return Summon(agent, line.quoted("a message") if line.word else None)


def _release(line: RuleLineText) -> Action:
    return Release(read_targets(line))


def _run(line: RuleLineText) -> Action:
    return Shell(line.quoted("a command"))


def _pause(line: RuleLineText) -> Action:
    return Pause(read_targets(line))


def _resume(line: RuleLineText) -> Action:
    return Resume(read_targets(line))


def _scale(line: RuleLineText) -> Action:
    agent = read_agent(line)
    found = line.take(_COPIES)
    if found is None or int(found[0]) > MOST_COPIES:
        expected = f"a whole number from 0 to {MOST_COPIES}"
        at = found.start() if found else None
        raise line.error("bad_number", "how many copies is not said", expected, at)
    return Scale(agent, int(found[0]))


_ACTIONS: dict[str, Callable[[RuleLineText], Action]] = {
    "msg": _tell,
    "summon": _summon,
    "release": _release,
    "run": _run,
    "pause": _pause,
    "resume": _resume,
    "scale": _scale,
}
