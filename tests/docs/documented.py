"""Runs the shell samples of a page as a reader would: in order, in one shell.

Most pages are for a Drover that runs (DocumentedFleet); some begin with nothing (NewUser).
"""

import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

from agents_app.conf import ROOT
from tests.docs.pages import Sample, samples, title
from tests.parts import command_server
from tests.parts.ports import free_port
from tests.parts.scripted_model import TOOLS, ScriptedModel, coding_tool
from tests.parts.stack_part import PrivateStack

INSIDE = "inside a run"
STOPS = "stops after "
# Pages that create a project and start Drover themselves, without variables and without a checkout.
FROM_NOTHING = frozenset(
    {
        "README.md",
        "docs/getting-started.md",
        "docs/guides/claude-code.md",
        "docs/guides/codex.md",
        "docs/guides/from-cron.md",
    }
)
# `make` only checks that its targets exist.
_BEGIN = f"""set -eu
make() {{
  command make -C {ROOT} -n "$@" > /dev/null
}}
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
# The program as the package installs it.
_DROVER = """#!{python}
import sys

sys.path.insert(0, {root!r})
from scheduler_project.command import main

main()
"""
_FAST_DROVER = """#!/bin/sh
exec {python} -IS {server} {socket} --as {drover} "$@"
"""
# The tools of a coding agent, which call the scripted model instead of a service on the internet.
_TOOLS = {
    "claude": """#!/bin/sh
export ANTHROPIC_BASE_URL={url} CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC=1
exec {tool} "$@"
""",
    "codex": """#!/bin/sh
shift
exec {tool} exec -c 'openai_base_url="{url}/v1"' "$@"
""",
}
_AGENT = """---
description: {place}
harness: shell
timeout: 60s
---
set -eu
{text}"""


def pages_with_commands() -> list[Path]:
    """Of a running Drover; those of FROM_NOTHING have tests of their own."""
    found = (each.page for each in samples("sh") if _is_run(each) and each.note != INSIDE)
    return [page for page in dict.fromkeys(found) if title(page) not in FROM_NOTHING]


def samples_inside_runs() -> dict[str, Sample]:
    """By the name of the agent whose script the sample is."""
    inside = [each for each in samples("sh") if each.note == INSIDE]
    return {f"sample-{number}": each for number, each in enumerate(inside, start=1)}


def _is_run(sample: Sample) -> bool:
    return not sample.is_left_out


def script_of(page: Path, port: int) -> str:
    blocks = [
        each
        for each in samples("sh")
        if each.page == page and _is_run(each) and each.note != INSIDE
    ]
    return "".join(_script(each, port) for each in blocks)


def _script(sample: Sample, port: int) -> str:
    # The gateway of the tests has a port of its own.
    text = sample.text.replace("localhost:8080", f"127.0.0.1:{port}")
    if not sample.note.startswith(STOPS):
        return text
    seconds = sample.note.removeprefix(STOPS).split()[0]
    return _STREAM.format(seconds=seconds, text=text)


def write_program(path: Path, text: str) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    path.chmod(0o755)
    return path


def write_drover(directory: Path) -> Path:
    text = _DROVER.format(python=sys.executable, root=str(ROOT))
    return write_program(directory / "drover", text)


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
        return self.run(script_of(page, self.stack.conf.port))

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
        """Programs `python` and `drover` that ask a process that has loaded Drover."""
        directory = self.checkout.parent / "programs"
        names = {"python": sys.executable, "server": command_server.__file__}
        names["socket"] = str(self.stack.command_server())
        names["drover"] = str(write_drover(directory / "slow"))
        write_program(directory / "python", _PYTHON.format(**names))
        write_program(directory / "drover", _FAST_DROVER.format(**names))
        return directory


@dataclass(frozen=True)
class NewUser:
    """A user with an empty directory, `drover` on the PATH, and no variables of Drover."""

    directory: Path
    port: int

    @classmethod
    def create(cls, directory: Path) -> "NewUser":
        write_drover(directory / "bin")
        return cls(directory, free_port())

    def install_tool(self, name: str, model: ScriptedModel) -> None:
        text = _TOOLS[name].format(url=model.url, tool=coding_tool(name))
        write_program(self.directory / "bin" / name, text)

    def run_page(self, page: Path) -> subprocess.CompletedProcess[str]:
        return self.run(script_of(page, self.port))

    def run(self, script: str) -> subprocess.CompletedProcess[str]:
        home = self.directory / "home"
        home.mkdir(exist_ok=True)
        return subprocess.run(
            ["bash", "-c", _BEGIN + script],
            cwd=home,
            env={
                "HOME": str(home),
                "LANG": "C.UTF-8",
                "PATH": f"{self.directory}/bin:/usr/local/bin:/usr/bin:/bin:{TOOLS}",
                "DROVER_PORT": str(self.port),
                # It takes as long to start as all other processes.
                "DROVER_FLOWER": "no",
            },
            capture_output=True,
            text=True,
            timeout=240,
            check=False,
        )

    def end(self) -> None:
        for data in (self.directory / "home").glob("*/.drover"):
            self.run(f"drover --project {data.parent} down --now")
