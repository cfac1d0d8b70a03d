"""The stack of a soak: agents that are started by schedules, webhooks, people and calls."""

import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.faults.hooks import CONFIG, SECRET, WANTED
from tests.faults.real_fleet import QUICK, RealFleet
from tests.parts.ports import free_port
from tests.parts.postgres_part import PostgresServer
from tests.parts.stack_part import PrivateStack

DATABASES = ("sqlite", "postgres")
TOKEN = "drover_for-the-soak-0123456789abcdef"
QUEUE_SIZE = 100_000
CALL = """
id=$(drover call called hello | sed -n 's/.*"callId": *\\([0-9]*\\).*/\\1/p')
[ -n "$id" ] || exit 3
drover wait "$id" --timeout 20 >/dev/null || exit 4
"""
SETTINGS = {
    **QUICK,
    "DROVER_WORKERS": "2",
    "DROVER_CONCURRENCY": "6",
    "DROVER_API_RATE": "100000",
    "DROVER_BOOTSTRAP_TOKEN": TOKEN,
    "HOOK_SECRET": SECRET,
}
# The agent of tests/faults/hooks.py; `worked` counts its work items.
HOOKED = "triage"
MANUAL = "manual"
MINUTELY = "minutely"


def add_agents(fleet: RealFleet) -> None:
    """Each agent of scale 1 detects a second live run by a file lock."""
    (fleet.stack.project / "config.toml").write_text(CONFIG)
    common: dict[str, object] = {"on_lost": "retry", "work_queue_size": QUEUE_SIZE}
    every_minute = {
        "type": "cron", "expression": "* * * * *", "overlap": "queue", "catch_up": "all"
    }  # fmt: skip
    fleet.agent(HOOKED, "sleep 0.1", webhooks=WANTED, **common)
    fleet.agent(MANUAL, "sleep 0.2", **common)
    fleet.agent(MINUTELY, "sleep 5", schedules={"main": every_minute}, **common)
    fleet.agent("ticking", "sleep 3", schedule="1s", **common)
    fleet.agent("calling", CALL, schedule="1s", **common)
    fleet.agent("called", "drover return hello", **common)


@contextmanager
def soaked_fleet(database: str, directory: Path) -> Iterator[RealFleet]:
    """A fleet that is not started; its processes and its PostgreSQL end with the block."""
    server = PostgresServer(free_port()).create() if database == "postgres" else None
    try:
        url = server.new_database() if server else ""
        fleet = RealFleet(PrivateStack(directory, url, **SETTINGS))
        try:
            add_agents(fleet)
            yield fleet
        finally:
            fleet.close()
    finally:
        if server:
            server.remove()


def new_directory() -> Path:
    """Short, because Unix sockets are below it; kept if the soak fails."""
    return Path(tempfile.mkdtemp(prefix="drover-soak-"))
