"""Runs in containers, one after the other, beside plain containers through the SDK."""

import time
from functools import partial

from docker import DockerClient

from tests.benchmarks.bed import DATABASES, PEER, Bed, Numbers, inside, medians
from tests.benchmarks.looking import reader, seconds_of, time_reached
from tests.benchmarks.table import Row
from tests.parts.docker_part import IMAGE, DockerEngine

RUNS = 10
COMMAND = ["sh", "-c", "echo hello"]
RUNTIME = {"type": "container", "image": IMAGE, "memory": "64m"}
_ENDED = "SELECT count(*) FROM drover_work_item WHERE finished_at IS NOT NULL"
_LAST_END = "SELECT max(finished_at) FROM drover_run"
_SUCCEEDED = "SELECT count(*) FROM drover_run WHERE state = 'succeeded'"


def measure(bed: Bed) -> list[Row]:
    engine = DockerEngine()
    try:
        engine.create()
        subjects = {PEER: partial(_peer, engine)}
        subjects |= {on: partial(_drover, bed, on, engine) for on in DATABASES}
        found = medians(bed.rounds, subjects)
    finally:
        engine.remove()
    return [
        Row(
            what="a run in a container, rows durable (peer: docker run through the SDK)",
            on=on,
            drover=found[on]["ms"],
            peer=found[PEER]["ms"],
            unit="ms",
            at_most_of_peer=1.3,
        )
        for on in DATABASES
    ]


def _drover(bed: Bed, on: str, engine: DockerEngine) -> Numbers:
    with bed.drover(on, DOCKER_HOST=engine.url) as stack:
        fleet = {"agents": 1, "scale": 1, "command": COMMAND, "items": RUNS, "runtime": RUNTIME}
        inside(stack, "fleet:write_work", **fleet)
        stack.start("worker-1")
        began_at = inside(stack, "fleet:release")
        with reader(stack) as read:
            time_reached(lambda: read(_ENDED), RUNS, every_seconds=0.2)
            assert read(_SUCCEEDED) == RUNS, stack.log("worker-1")
            seconds = seconds_of(read(_LAST_END)) - began_at
    return {"ms": seconds / RUNS * 1000}


def _peer(engine: DockerEngine) -> Numbers:
    client = DockerClient(engine.url)
    began = time.monotonic()
    for _ in range(RUNS):
        said = client.containers.run(
            IMAGE, COMMAND, network_mode="none", mem_limit="64m", init=True, remove=True
        )
        assert said == b"hello\n"
    return {"ms": (time.monotonic() - began) / RUNS * 1000}
