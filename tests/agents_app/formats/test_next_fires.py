"""The fires of a month are those of the other system, by the library that the system itself uses.

Not on the days on which daylight saving starts or ends: there the libraries disagree with each
other, and the policies of Drover hold.
"""

import json
import os
import shutil
import subprocess
from datetime import UTC, datetime, timedelta
from itertools import islice, takewhile
from pathlib import Path
from zoneinfo import ZoneInfo

import pytest
from cronsim import CronSim

from agents_app import triggers
from agents_app.rules.language import Rule, next_due, parse_source, read_source, rules_file
from agents_app.rules.language.rule import At
from tests.agents_app.formats.written import PROJECTS, read
from tests.parts.missing import missing

# Where .ci/run installs what herdctl and Action Llama compute their fires with.
MODULES = Path(os.environ.get("DROVER_TEST_TOOLS", "/nowhere")) / "node_modules"
INSTALL = "npm install --prefix DIR cron-parser@5.4.0 croner@9.1.0; DROVER_TEST_TOOLS=DIR"
PROGRAM = Path(__file__).parent / "next_fires.cjs"
FIRST = datetime(2026, 1, 15, 12, 0, 30, tzinfo=UTC)
DAY = timedelta(days=1)
DAYS = 30
# Of a line that fires more often, the first fires of each third day are compared, too: cron-parser
# takes milliseconds for a fire.
MOST_IN_A_MONTH, MOST_IN_A_DAY = 40, 3
# Lines that are in few projects and that the two libraries could read in two ways.
RARE = [
    *("0 0 13 * 5", "0 6 */2 * 1", "30 4 1,15 * 0", "59 23 28-31 * *", "0 0 31 * *", "0 0 * * 7"),
    *("0 12 * JAN-MAR MON", "15 3 * feb sun", "0 9-17/2 * * 1-5", "10-50/20 6 * * *", "7 7 7 * *"),
]

Span = tuple[datetime, datetime]


def oracle(
    library: str, lines: list[str], zone: str, spans: list[Span], most: int
) -> list[list[list[int]]]:
    node = shutil.which("node") or missing("node", "apt-get install nodejs npm")
    if not (MODULES / library).is_dir():
        missing(library, INSTALL)
    written = [[start.isoformat(), end.isoformat()] for start, end in spans]
    asked = {"library": library, "lines": lines, "zone": zone, "spans": written, "most": most}
    env = {"NODE_PATH": str(MODULES), "PATH": os.environ["PATH"]}
    text = json.dumps(asked)
    done = subprocess.run(
        [node, PROGRAM], input=text, capture_output=True, text=True, env=env, check=True
    )
    fires: list[list[list[int]]] = json.loads(done.stdout)
    return fires


def drover(cron: str, zone: str, span: Span, most: int) -> list[int]:
    trigger = triggers.parse_trigger(cron)
    fires = triggers.fires_between(trigger, *span, triggers.zone(zone), most)
    return [int(fire.timestamp()) for fire in fires]


def assert_same_fires(
    library: str, lines: list[str], zone: str, spans: list[Span], most: int
) -> list[str]:
    """Compare the fires of all lines; returns the lines with more fires than were compared."""
    longer = []
    for line, of_line in zip(lines, oracle(library, lines, zone, spans, most), strict=True):
        for span, fires in zip(spans, of_line, strict=True):
            assert drover(line, zone, span, most) == fires, f"{line} in {zone} after {span[0]}"
        if any(len(fires) == most for fires in of_line):
            longer.append(line)
    return longer


def assert_same_month(library: str, lines: list[str], zone: str) -> None:
    month = [(FIRST, FIRST + DAYS * DAY)]
    frequent = assert_same_fires(library, lines, zone, month, MOST_IN_A_MONTH)
    days = [(FIRST + day * DAY, FIRST + (day + 1) * DAY) for day in range(1, DAYS, 3)]
    assert_same_fires(library, frequent, zone, days, MOST_IN_A_DAY)


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
def test_the_fires_of_a_month_are_those_of_the_other_system(project, library, zone, least):
    lines = crons(project)
    assert len(lines) >= least
    assert_same_month(library, lines, zone)


@pytest.mark.parametrize("library", ["cron-parser", "croner"])
def test_lines_that_could_be_read_in_two_ways_are_read_as_the_other_system_does(library):
    assert_same_month(library, RARE, "Asia/Kolkata")


# --- Metateam -------------------------------------------------------------------------------


def rules_of(project: str) -> list[Rule]:
    source = parse_source(read_source(rules_file(PROJECTS / project)))
    assert source.errors == ()
    return list(source.rules)


@pytest.mark.parametrize(("project", "least"), [("shipyard", 3), ("observatory", 20)])
def test_cron_rules_of_a_crew_fire_as_a_crontab_does(project, least):
    """Its times are standard crontab in the time zone of the server."""
    zone = ZoneInfo("America/Sao_Paulo")
    rules = [rule for rule in rules_of(project) if isinstance(rule.trigger, At)]
    assert len(rules) >= least
    end = FIRST + DAYS * DAY
    for rule in rules:
        assert isinstance(rule.trigger, At)
        wanted = takewhile(
            lambda fire: fire <= end, CronSim(rule.trigger.expression, FIRST.astimezone(zone))
        )
        fires, last = [], FIRST
        while (last := next_due(rule.trigger, last, zone)) <= end:
            fires.append(last)
        assert fires == list(wanted), rule.name


def test_short_forms_of_times_mean_a_day_or_a_day_of_the_week():
    found = {rule.name: rule.trigger for rule in rules_of("observatory")}
    named = ("open", "close", "weekly", "monday")
    assert [found[name] for name in named] == [
        *(At("45 18 * * *"), At("15 6 * * *"), At("0 0 * * 0"), At("5 9 * * 1")),
    ]


def test_an_interval_of_a_crew_waits_one_full_period_first():
    every = [rule for rule in rules_of("observatory") if not isinstance(rule.trigger, At)]
    zone = ZoneInfo("UTC")
    spans = [next_due(rule.trigger, FIRST, zone) - FIRST for rule in islice(every, 5)]
    assert [span.total_seconds() for span in spans] == [30, 60, 300, 7200, 86_400]
