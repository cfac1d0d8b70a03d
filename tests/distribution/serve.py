"""Starts an installed Drover outside the checkout, runs an agent and stops it again."""

import contextlib
import os
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import psutil

from tests.parts.ports import free_port
from tests.parts.processes import stop_process

SKILL = """---
description: Greets
harness: shell
timeout: 30s
---
drover return "greeted"
echo "Hello from run $DROVER_RUN_ID"
"""


class InstalledDrover:
    """The command of an environment, with a project of its own and no variables of Drover."""

    def __init__(self, programs: Path, directory: Path) -> None:
        self.drover, self.project = programs / "drover", directory / "fleet"
        agent = self.project / "agents" / "greeter"
        agent.mkdir(parents=True)
        (agent / "SKILL.md").write_text(SKILL)
        self.env = {
            name: os.environ[name] for name in ("PATH", "HOME", "LANG") if name in os.environ
        }

    def run(self, *arguments: str, seconds: float = 60) -> subprocess.CompletedProcess[str]:
        """A command in a directory below the project, as in another shell."""
        return subprocess.run(
            [self.drover, *arguments],
            cwd=self.project / "agents" / "greeter",
            env=self.env,
            capture_output=True,
            text=True,
            timeout=seconds,
            check=False,
        )

    @contextlib.contextmanager
    def up(self, seconds: float = 60) -> Iterator[None]:
        ports = {"DROVER_PORT": str(free_port()), "DROVER_FLOWER": "no"}
        log = self.project.parent / "up.log"
        with log.open("wb") as output:
            process = subprocess.Popen(
                [self.drover, "up"],
                cwd=self.project,
                env=self.env | ports,
                stdout=output,
                stderr=output,
                start_new_session=True,
            )
        try:
            give_up_at = time.monotonic() + seconds
            while "Drover is ready" not in log.read_text():
                assert process.poll() is None and time.monotonic() < give_up_at, log.read_text()
                time.sleep(0.1)
            yield
        finally:
            stop_process(process, 30)


def walk_of_a_new_user(programs: Path, home: Path, user: str | None = None) -> str:
    """From `init` to `down` as a new user would, without a variable but HOME and PATH.

    Returns what the run printed. The processes have their own session and inherit nothing.
    """
    env = {"HOME": str(home), "PATH": f"{programs}:/usr/bin:/bin"}

    def drover(*words: str, cwd: Path, **more: str) -> str:
        done = subprocess.run(
            ["drover", *words],
            cwd=cwd,
            env=env | more,
            user=user,
            group=user,
            extra_groups=[] if user else None,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=120,
            check=False,
        )
        assert done.returncode == 0, (words, done.stdout, done.stderr)
        return done.stdout

    project = home / "demo"
    drover("init", "demo", "--yes", cwd=home)
    ports = {"DROVER_PORT": str(free_port()), "DROVER_FLOWER": "no"}
    drover("up", "-d", cwd=project, **ports)
    try:
        printed = drover("run", "hello", "--wait", cwd=project)
        assert "succeeded" in drover("stat", cwd=project)
    finally:
        drover("down", cwd=project)
    left = [each for each in psutil.process_iter() if _names(each, project)]
    assert left == []
    return printed


def _names(process: psutil.Process, project: Path) -> bool:
    """Whether a living process belongs to the project by its environment or its arguments."""
    with contextlib.suppress(psutil.Error):
        known = [*process.cmdline(), *process.environ().values()]
        return any(str(project) in each for each in known)
    return False
