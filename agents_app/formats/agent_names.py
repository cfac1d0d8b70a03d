"""Names of imported agents: from a title, or from the program of a shell command."""

import re
import shlex
from collections import Counter
from pathlib import PurePosixPath

from agents_app.names import agent_name_problem

_MAX_LENGTH = 40
# The name is at the beginning, and the time to split a text grows with its square.
_MAX_COMMAND = 1000
_ASSIGNMENT = re.compile(r"[A-Za-z_][A-Za-z0-9_]*=")
_OTHER = re.compile(r"[^a-z0-9]+")
_ENDS_OF_A_PART = {"&&", "||", ";", "|", "&"}
_NUMBER = re.compile(r"[0-9.]+[smhd]?")
_TESTS = {"[", "[[", "test"}
# Programs that start another program, with the number of arguments before it.
_WRAPPERS = {
    "cd": 1, "chronic": 0, "command": 0, "env": 0, "exec": 0, "flock": 1, "ionice": 0,
    "nice": 0, "nohup": 0, "run-one": 0, "setsid": 0, "sudo": 0, "time": 0, "timeout": 0,
}  # fmt: skip
_OPTIONS_WITH_VALUES = {"-u", "-g"}
# Programs whose name says little: the next word is added.
_INTERPRETERS = {
    "bash", "bun", "claude", "codex", "curl", "dash", "deno", "docker", "genie", "make", "node",
    "npm", "npx", "perl", "php", "pnpm", "python", "python3", "rsync", "ruby", "run-parts", "sh",
    "uv", "wget", "zsh",
}  # fmt: skip


def slug(text: str, fallback: str = "job") -> str:
    """A valid agent name made of the letters and digits of a text."""
    name = _OTHER.sub("-", text.lower())[:_MAX_LENGTH].strip("-") or fallback
    return name if agent_name_problem(name) is None else f"{name}-job"


def name_of_command(command: str) -> str:
    """`backup` for `cd /srv && nice -n 5 /usr/bin/backup.sh --all`."""
    words = _meaningful(_words(command))
    if not words:
        return slug(command)
    program = _stem(words[0])
    with_next = program in _INTERPRETERS and len(words) > 1
    return slug(f"{program} {_stem(words[1])}" if with_next else program)


def _words(command: str) -> list[str]:
    lexer = shlex.shlex(command[:_MAX_COMMAND], posix=True, punctuation_chars=True)
    lexer.whitespace_split = True
    lexer.commenters = ""
    try:
        return list(lexer)
    except ValueError:  # a quote that is not closed
        return command[:_MAX_COMMAND].split()


def _meaningful(words: list[str]) -> list[str]:
    """The words from the program on, without options, assignments and redirections."""
    found: list[str] = []
    skip, in_test = 0, False
    for word in words:
        if set(word) <= set("();<>|&{}!"):
            if found and word in _ENDS_OF_A_PART:
                break
            in_test = in_test and word not in _ENDS_OF_A_PART
            skip = 1 if set(word) & set("<>") else 0
        elif in_test or (not found and word in _TESTS):
            in_test = True
        elif word.startswith(("-", "$")) or _ASSIGNMENT.match(word):
            skip += not found and word in _OPTIONS_WITH_VALUES
        elif skip:
            skip -= 1
        elif found or not (_NUMBER.fullmatch(word) or _stem(word) in _WRAPPERS):
            found.append(word)
        elif not found:
            skip = _WRAPPERS.get(_stem(word), 0)
    return found


def _stem(word: str) -> str:
    name = PurePosixPath(word).name or word
    stem, dot, extension = name.rpartition(".")
    return stem if dot and stem and len(extension) <= 4 else name


class KeyCounter:
    """Makes keys unique: the second `backup` of a source is `backup#2`."""

    def __init__(self) -> None:
        self._seen: Counter[str] = Counter()

    def key(self, wanted: str) -> str:
        self._seen[wanted] += 1
        count = self._seen[wanted]
        return wanted if count == 1 else f"{wanted}#{count}"
