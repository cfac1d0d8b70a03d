"""The next fires on every day of a month are those of the other system, by its own library.

Not on the days on which daylight saving starts or ends: there the libraries disagree with each
other, and the policies of Drover hold.
"""

import json
import os
import shutil
import subprocess
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from agents_app import triggers
from tests.agents_app.formats.written import read
from tests.parts.missing import missing

# Where .ci/run installs what herdctl and Action Llama compute their fires with.
MODULES = Path(os.environ.get("DROVER_TEST_TOOLS", "/nowhere")) / "node_modules"
INSTALL = "npm install --prefix DIR cron-parser@5.4.0 croner@9.1.0; DROVER_TEST_TOOLS=DIR"
PROGRAM = Path(__file__).parent / "next_fires.cjs"
# Each day of 30; cron-parser takes several milliseconds for a fire.
FIRST = datetime(2026, 1, 15, 12, 0, 30, tzinfo=UTC)
STARTS = tuple(FIRST + timedelta(days=3 * number) for number in range(10))
# Daily schedules fire three times until the next start.
COUNT = 3


def oracle(library: str, lines: list[str], zone: str) -> list[list[list[int]]]:
    node = shutil.which("node") or missing("node", "apt-get install nodejs npm")
    if not (MODULES / library).is_dir():
        missing(library, INSTALL)
    starts = [start.isoformat() for start in STARTS]
    asked = {"library": library, "lines": lines, "zone": zone, "starts": starts, "count": COUNT}
    env = {"NODE_PATH": str(MODULES), "PATH": os.environ["PATH"]}
    text = json.dumps(asked)
    done = subprocess.run(
        [node, PROGRAM], input=text, capture_output=True, text=True, env=env, check=True
    )
    fires: list[list[list[int]]] = json.loads(done.stdout)
    return fires


def drover(cron: str, zone: str, start: datetime) -> list[int]:
    fires = triggers.upcoming(triggers.parse_trigger(cron), start, triggers.zone(zone), COUNT)
    return [int(fire.timestamp()) for fire in fires]


def crons(project: str) -> list[str]:
    schedules = [one for agent in read(project, HOME="/nowhere").agents for one in agent.schedules]
    parsed = {one.expression: triggers.parse_trigger(one.expression) for one in schedules}
    return sorted(text for text, one in parsed.items() if isinstance(one, triggers.CronTrigger))


@pytest.mark.parametrize(
    ("project", "library", "zone", "least"),
    [
        ("newsroom", "cron-parser", "America/New_York", 4),
        ("company", "cron-parser", "Europe/Berlin", 24),
        ("helpdesk", "croner", "UTC", 4),
        ("studio", "croner", "Australia/Lord_Howe", 10),
    ],
)
def test_the_next_fires_are_those_of_the_other_system(project, library, zone, least):
    lines = crons(project)
    assert len(lines) >= least
    for line, of_line in zip(lines, oracle(library, lines, zone), strict=True):
        for start, fires in zip(STARTS, of_line, strict=True):
            assert drover(line, zone, start) == fires, f"{line} in {zone} after {start}"
