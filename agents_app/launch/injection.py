"""Replaces commands in an agent's instructions, written !`command`, by their output.

Only for the agent's own file: commands in texts from outside must not be executed.
"""

import re
from collections.abc import Callable

_COMMAND = re.compile(r"!`([^`]+)`")


def has_commands(instructions: str) -> bool:
    return _COMMAND.search(instructions) is not None


def inject(instructions: str, output_of: Callable[[str], str]) -> str:
    """Commands in the output of a command are not executed: the output may come from outside."""
    return _COMMAND.sub(lambda found: output_of(found[1]), instructions)
