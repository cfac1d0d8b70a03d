"""A program that supervises toy roles read from a JSON file, for tests that signal or kill it."""

import asyncio
import json
import os
import signal
import sys
import time
from pathlib import Path
from typing import Any

from agents_app.stack import supervisor as supervisor_module
from agents_app.stack.console import Console
from agents_app.stack.role import Role
from agents_app.stack.supervisor import Callbacks, Supervisor


def role_of(fields: dict[str, Any]) -> Role:
    for name in ("stop_signal", "kill_signal", "death_signal"):
        if name in fields:
            fields[name] = signal.Signals[fields[name]]
    if "ready_file" in fields:
        fields["ready_file"] = Path(fields["ready_file"])
    fields["argv"] = tuple(fields["argv"])
    return Role(env=dict(os.environ), **fields)


def _record(path: Path, state: str) -> None:
    """Fails or hangs if a file says so, as an unreachable database would."""
    if path.with_name("hangs").exists():
        time.sleep(60)
    if path.with_name("unreachable").exists():
        raise OSError("no database")
    with path.with_name("states").open("a") as states:
        states.write(f"{state}\n")


async def supervise(path: Path) -> int:
    if path.with_name("hangs").exists():
        supervisor_module._RECORD_SECONDS = 0.3
    roles = [role_of(fields) for fields in json.loads(path.read_text())]
    console = Console(sys.stdout, tuple(role.name for role in roles))
    callbacks = Callbacks(
        on_ready=lambda: console.say("everything is ready"),
        running=lambda: 3,
        interrupt=lambda: path.with_name("interrupted").touch(),
        record_draining=lambda: _record(path, "draining"),
        record_stopped=lambda: _record(path, "stopped"),
    )
    supervisor = Supervisor(roles, console, callbacks, grace_seconds=2, progress_seconds=0.2)
    return await supervisor.run()


if __name__ == "__main__":
    sys.exit(asyncio.run(supervise(Path(sys.argv[1]))))
