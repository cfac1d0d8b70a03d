"""What somebody types first, in a project that has no agents; pure."""

from dataclasses import dataclass
from pathlib import Path
from shlex import quote

_SKILL = """---
description: Says hello every five minutes
schedule: every 5 minutes
command: [echo, hello]
---
Say hello."""


@dataclass(frozen=True, slots=True)
class FirstRun:
    """Commands as they can be pasted into a shell."""

    make: str
    run: str = "python manage.py run hello --wait"
    logs: str = "python manage.py logs hello"


def first_run(project: Path) -> FirstRun:
    directory = quote(str(project / "agents" / "hello"))
    return FirstRun(f"mkdir -p {directory}\ncat > {directory}/SKILL.md <<'END'\n{_SKILL}\nEND")
