"""What the sandbox adds to a run of a child process: the first run of an agent, and later ones."""

import os
import tempfile
import time
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from statistics import median

from agents_app.conf import ROOT
from agents_app.runners import ProcessRunner, RunControl, RunSpec, Runtime, Sandbox
from tests.benchmarks.bed import PEER, SQLITE, Bed, Numbers, inside, medians
from tests.benchmarks.table import Row

RUNS = 200
PROGRAM = "/bin/true"
LIMITED = Runtime(pids_limit=500, memory="1g")


class _NoSink:
    def feed(self, _stream: int, _data: bytes, _at: float) -> None: ...

    def flush(self) -> None: ...


def measure(bed: Bed) -> list[Row]:
    with tempfile.TemporaryDirectory() as directory:
        free = _spec(Path(directory))
        confined = replace(free, sandbox=_sandbox(bed, Path(directory)))
        first = [_in_new_directory(confined, Path(directory), n) for n in range(RUNS)]
        subjects = {
            PEER: lambda: _time([free] * RUNS),
            "without limits": lambda: _time([confined] * RUNS),
            "with limits": lambda: _time([replace(confined, runtime=LIMITED)] * RUNS),
            "the first of an agent": lambda: _time(first),
        }
        found = medians(bed.rounds, subjects)
    bare = found.pop(PEER)["ms"]
    return [
        Row(
            what=f"the sandbox of a run, {name}: above the same run without",
            on="",
            drover=numbers["ms"] - bare,
            peer=bare,
            unit="ms",
            at_most=2.0 if name == "with limits" else 0.5,
        )
        for name, numbers in found.items()
    ]


def _sandbox(bed: Bed, directory: Path) -> Sandbox:
    """With the rules of a real run on this machine, and directories of its own."""
    found = {
        name: tuple(paths)
        for name, paths in inside(bed.drover(SQLITE), "sandbox:paths", program=PROGRAM).items()
    }
    return Sandbox(
        own_read=(str(ROOT / "agents_app" / "agent_bin"), str(directory), *found["own_read"]),
        own_write=(str(directory / "1"), str(directory)),
        read=found["read"],
        write=found["write"],
    )


def _spec(directory: Path) -> RunSpec:
    workdir = directory / "1"
    workdir.mkdir()
    (workdir / "prompt").write_text("")
    env = {"PATH": os.environ["PATH"], "DROVER_RUN_ID": "1"}
    return RunSpec(1, (PROGRAM,), env, workdir, workdir / "prompt", 30.0)


def _in_new_directory(spec: RunSpec, directory: Path, number: int) -> RunSpec:
    """Rules that no earlier run had."""
    workdir = directory / f"new-{number}"
    workdir.mkdir()
    (workdir / "prompt").write_text("")
    sandbox = replace(spec.sandbox or Sandbox(), own_write=(str(workdir), str(directory)))
    prompt = workdir / "prompt"
    return replace(spec, cwd=workdir, prompt_file=prompt, sandbox=sandbox)


def _time(specs: Sequence[RunSpec]) -> Numbers:
    """The median of one run after the other, in milliseconds."""
    runner, taken = ProcessRunner(), []
    for spec in specs:
        began = time.perf_counter()
        outcome = runner.run(spec, RunControl(), _NoSink())
        taken.append(time.perf_counter() - began)
        assert outcome.exit_code == 0, outcome
    return {"ms": median(taken) * 1000}
