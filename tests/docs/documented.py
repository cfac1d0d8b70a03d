"""Runs the shell samples of a page as a reader would: in order, in one shell, in a checkout."""

import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

from tests.docs.pages import Sample, samples
from tests.parts import command_server
from tests.parts.stack_part import PrivateStack

INSIDE = "inside a run"
STOPS = "stops after "
# `make` only checks the target. With my-fleet, which the running Drover serves, `make run` would
# start a second Drover: instead the running one reads the files, as it does every two seconds.
_BEGIN = """set -eu
make() {
  command make -n "$@" > /dev/null
  if [ "$1 $DROVER_PROJECT" = "run my-fleet" ]; then
    python manage.py discover --sync > /dev/null
  fi
}
"""
_STREAM = """export TOKEN
timeout {seconds} bash -c "$(cat <<'SAMPLE'
{text}SAMPLE
)" > stream.out || test $? = 124
test -s stream.out
"""
_PYTHON = """#!/bin/sh
if [ "$1" = manage.py ]; then
  shift
  exec {python} -IS {server} {socket} "$@"
fi
exec {python} "$@"
"""
_AGENT = """---
description: {place}
harness: shell
timeout: 60s
---
set -eu
{text}"""


def pages_with_commands() -> list[Path]:
    found = (each.page for each in samples("sh") if _is_run(each) and each.note != INSIDE)
    return list(dict.fromkeys(found))


def samples_inside_runs() -> dict[str, Sample]:
    """By the name of the agent whose script the sample is."""
    inside = [each for each in samples("sh") if each.note == INSIDE]
    return {f"sample-{number}": each for number, each in enumerate(inside, start=1)}


def _is_run(sample: Sample) -> bool:
    return not sample.is_left_out


@dataclass(frozen=True)
class DocumentedFleet:
    stack: PrivateStack
    checkout: Path

    def write_agents_of_samples(self) -> None:
        for name, sample in samples_inside_runs().items():
            directory = self.checkout / "my-fleet" / "agents" / name
            directory.mkdir(parents=True)
            text = _AGENT.format(place=sample, text=sample.text)
            (directory / "SKILL.md").write_text(text)

    def run_page(self, page: Path) -> subprocess.CompletedProcess[str]:
        blocks = [
            each
            for each in samples("sh")
            if each.page == page and _is_run(each) and each.note != INSIDE
        ]
        return self.run("".join(map(self._script, blocks)))

    def _script(self, sample: Sample) -> str:
        # The gateway of the tests has a port of its own.
        text = sample.text.replace("localhost:8080", f"127.0.0.1:{self.stack.conf.port}")
        if not sample.note.startswith(STOPS):
            return text
        seconds = sample.note.removeprefix(STOPS).split()[0]
        return _STREAM.format(seconds=seconds, text=text)

    def run(self, script: str) -> subprocess.CompletedProcess[str]:
        path = f"{self._programs()}:{Path(sys.executable).parent}:{self.stack.env['PATH']}"
        return subprocess.run(
            ["bash", "-c", _BEGIN + script],
            cwd=self.checkout,
            env={**self.stack.env, "PATH": path},
            capture_output=True,
            text=True,
            timeout=180,
            check=False,
        )

    def _programs(self) -> Path:
        """A directory with a `python` that leaves commands to a process that has loaded Drover."""
        directory = self.checkout.parent / "programs"
        directory.mkdir(exist_ok=True)
        python = directory / "python"
        names = {"python": sys.executable, "server": command_server.__file__}
        python.write_text(_PYTHON.format(**names, socket=self.stack.command_server()))
        python.chmod(0o755)
        return directory
