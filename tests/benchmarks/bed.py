"""The servers and databases of the benchmarks: one Redis, one PostgreSQL, private stacks."""

import contextlib
import json
import math
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from statistics import median
from typing import Any, TypeVar

from agents_app.conf import ROOT
from agents_app.installation.redis_server import find_server
from tests.benchmarks.peer.stack import PeerStack
from tests.parts.ports import free_port
from tests.parts.postgres_part import PostgresServer
from tests.parts.redis_part import RedisServer
from tests.parts.stack_part import PrivateStack, copy_of

SQLITE, POSTGRES = "SQLite", "PostgreSQL"
DATABASES = (SQLITE, POSTGRES)
PEER = "peer"
Numbers = dict[str, float]
S = TypeVar("S", bound=PrivateStack)


class Bed:
    """Creates private stacks and private peers, and removes them at the end."""

    def __init__(self, rounds: int) -> None:
        self.rounds = rounds
        self._made = 0

    def __enter__(self) -> "Bed":
        with contextlib.ExitStack() as parts:
            self._directory = Path(
                parts.enter_context(tempfile.TemporaryDirectory(prefix="drover-bench-"))
            )
            # Runs of another user must be able to enter it.
            self._directory.chmod(0o711)
            self._redis = RedisServer(find_server(), self._directory).start()
            parts.callback(self._redis.stop)
            # With fsync, as with SQLite: numbers without durability would be too good.
            self._postgres = PostgresServer(free_port(), fsync=True).create()
            parts.callback(self._postgres.remove)
            self._migrate_templates()
            self._parts = parts.pop_all()
        return self

    def __exit__(self, *_: object) -> None:
        self._parts.close()

    def drover(self, on: str, *, own_redis: bool = False, **env: str) -> PrivateStack:
        """A stack that is not started, with default settings instead of the short ones of tests."""
        defaults = {
            "DROVER_CONCURRENCY": "16", "DROVER_RECONCILE_SECONDS": "10", "DROVER_FLOWER": "yes"
        }  # fmt: skip
        return self._new(PrivateStack, on, own_redis, defaults | env)

    def peer(self, on: str = SQLITE, *, own_redis: bool = False, **env: str) -> PeerStack:
        return self._new(PeerStack, on, own_redis, env)

    def with_peer(
        self, drover: Callable[["Bed", str], Numbers], peer: Callable[["Bed"], Numbers]
    ) -> dict[str, Callable[[], Numbers]]:
        """The subjects of `medians`: the peer, and Drover on each database."""
        subjects: dict[str, Callable[[], Numbers]] = {PEER: partial(peer, self)}
        return subjects | {on: partial(drover, self, on) for on in DATABASES}

    def _new(self, kind: type[S], on: str, own_redis: bool, env: Mapping[str, str]) -> S:
        self._made += 1
        directory = self._directory / str(self._made)
        url = self._new_database(on, directory / "data")
        redis_url = "" if own_redis else self._redis.url
        return kind(directory, url, redis_url, DROVER_REDIS_PREFIX=f"{self._made}:", **env)

    def _new_database(self, on: str, data: Path) -> str:
        if on == SQLITE:
            return copy_of(self._template.data / "drover.sqlite3", data / "drover.sqlite3")
        return self._postgres.new_database(self._postgres_template.rpartition("/")[2])

    def _migrate_templates(self) -> None:
        self._template = PrivateStack(self._directory / "template")
        self._template.migrate()
        self._postgres_template = self._postgres.new_database()
        PrivateStack(self._directory / "pg-template", self._postgres_template).migrate()


def inside(stack: PrivateStack, function: str, **arguments: Any) -> Any:
    """Calls `module:function` of tests.benchmarks.inside in a process that has the stack's Django.

    This process has none, because Django knows one database and a benchmark compares several."""
    argv = [sys.executable, "-m", "tests.benchmarks.inside", function, json.dumps(arguments)]
    done = subprocess.run(
        argv, cwd=ROOT, env=stack.env, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def medians(rounds: int, subjects: Mapping[str, Callable[[], Numbers]]) -> dict[str, Numbers]:
    """Measure each subject once per round, so that noise affects all; returns medians by name."""
    taken: dict[str, list[Numbers]] = {name: [] for name in subjects}
    for number in range(1, rounds + 1):
        for name, measure in subjects.items():
            numbers = measure()
            taken[name].append(numbers)
            shown = ", ".join(f"{key} {value:.4g}" for key, value in numbers.items())
            say(f"  round {number}, {name}: {shown}")
    return {
        name: {key: median(numbers[key] for numbers in all_of_it) for key in all_of_it[0]}
        for name, all_of_it in taken.items()
    }


def percentile(values: Sequence[float], percent: float) -> float:
    """The smallest value that this percentage of the values does not exceed."""
    ordered = sorted(values)
    return ordered[max(0, math.ceil(len(ordered) * percent / 100) - 1)]


def say(text: str) -> None:
    print(f"{time.strftime('%H:%M:%S')} {text}", file=sys.stderr, flush=True)
