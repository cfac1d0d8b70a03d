"""Names in files: valid agent names, spellings of fields, and suggestions; pure."""

import re
import sys
from collections.abc import Collection, Iterable
from difflib import get_close_matches
from pathlib import Path

MAX_NAME_LENGTH = 64
_AGENT_NAME = re.compile(r"[a-z0-9](?:[a-z0-9]|-(?=[a-z0-9]))*")
_CAMEL_HUMP = re.compile(r"(?<=[a-z0-9])(?=[A-Z])")
# The script, and the module that it calls.
_OF_DROVER = frozenset({"drover", "command.py"})
_MANAGE = Path(__file__).resolve().parent.parent / "manage.py"
_OTHER_SPELLINGS = {
    "max_work_queue_size": "work_queue_size",
    "webhook_queue_size": "work_queue_size",
    "max_trigger_depth": "max_call_depth",
    "cron": "expression",
}


def agent_name_problem(name: str) -> str | None:
    """Why the name is not a valid agent name, or None."""
    if name == "default":
        return "the agent name 'default' is reserved; rename the directory"
    if len(name) > MAX_NAME_LENGTH:
        return f"the agent name has {len(name)} characters; at most {MAX_NAME_LENGTH} are allowed"
    if not _AGENT_NAME.fullmatch(name):
        return (
            f"{name!r} is not a valid agent name; use a-z, 0-9 and single hyphens between them, "
            "for example 'nightly-report'"
        )
    return None


def canonical(key: str) -> str:
    """The canonical spelling: `maxReruns`, `max-reruns` and `max_reruns` are the same field."""
    snake = _CAMEL_HUMP.sub("_", key).replace("-", "_").lower()
    return _OTHER_SPELLINGS.get(snake, snake)


def closest(key: str, known: Collection[str], *, likeness: float = 0.6) -> str | None:
    matches = get_close_matches(canonical(key), sorted(known), n=1, cutoff=likeness)
    return matches[0] if matches else None


def program_name() -> str:
    """The name of the command line for messages: `manage.py` in a checkout, unless the command was
    called as `drover`; a server process cannot see how in its arguments."""
    called = Path(sys.argv[0]).name in _OF_DROVER
    return "drover" if called or not _MANAGE.is_file() else "manage.py"


def did_you_mean(name: str, known: Iterable[str]) -> str:
    """`; did you mean 'reporter'?`, or nothing."""
    close = get_close_matches(name, list(known), n=1)
    return f"; did you mean {close[0]!r}?" if close else ""


def mistyped(key: str, known: Collection[str]) -> bool:
    """Whether the key is a likely typo; other unknown keys may be custom keys."""
    return closest(key, known, likeness=0.85) is not None


def unknown_field(key: str, known: Collection[str]) -> str:
    suggestion = closest(key, known)
    if suggestion:
        return f"unknown field; did you mean {suggestion!r}?"
    return f"unknown field; the fields here are {', '.join(sorted(known))}"
