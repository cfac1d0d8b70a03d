"""Whom a rule is about: agents by name, all of them, or those that were found idle."""

import re
from collections.abc import Collection

from agents_app.names import agent_name_problem
from agents_app.rules.language.line import RuleLineText
from agents_app.rules.language.rule import Targets
from agents_app.triggers import excerpt

A_NAME = "the name of an agent"
IDLE = "{idle}"
_ITEM = re.compile(r'[^ \t,()"]+')
_COMMA = re.compile(",")


def read_agent(line: RuleLineText, but: Collection[str] = ()) -> str:
    """One name; `but` are words that mean something of their own here."""
    line.skip_blanks()
    start = line.at
    found = line.take(_ITEM)
    if found is None:
        here = f'"{excerpt(line.word)}" stands here' if line.word else "the line ends here"
        raise line.error("bad_agent", here, A_NAME, start)
    name = found[0]
    if name not in but and agent_name_problem(name):
        problem = f'"{excerpt(name)}" is no name of an agent'
        raise line.error("bad_agent", problem, "a-z, 0-9 and single hyphens between them", start)
    return name


def read_names(line: RuleLineText, but: Collection[str] = ()) -> tuple[str, ...]:
    """Names with commas between them; one that is said twice counts once."""
    names = [read_agent(line, but)]
    while line.take(_COMMA):
        names.append(read_agent(line, but))
    return tuple(dict.fromkeys(names))


def read_targets(line: RuleLineText) -> Targets:
    line.skip_blanks()
    start = line.at
    names = read_names(line, but=("all", IDLE))
    if names == ("all",):
        return "all"
    if names == (IDLE,):
        return "{idle}"
    if "all" in names or IDLE in names:
        problem = f'"all" and "{IDLE}" stand for others, and alone'
        raise line.error("bad_target", problem, f"all, {IDLE}, or names of agents", start)
    return names
