"""Commands in an agent's instructions, written !`command`, give way to what they print.

Only ever asked of the agent's own file: in a text from outside they would be anybody's commands.
"""

import re
from collections.abc import Callable

_COMMAND = re.compile(r"!`([^`]+)`")


def has_commands(instructions: str) -> bool:
    return _COMMAND.search(instructions) is not None


def inject(instructions: str, output_of: Callable[[str], str]) -> str:
    """What a command prints is not looked at again: it may come from anywhere."""
    return _COMMAND.sub(lambda found: output_of(found[1]), instructions)
