"""systemd timers with their services, compared with systemd-analyze for a month."""

import re
import shutil
import subprocess
from datetime import UTC, datetime
from zoneinfo import ZoneInfo

import pytest

from agents_app.formats.imported import Imported
from agents_app.formats.preview import new_fires
from agents_app.formats.source_files import SourceFile
from agents_app.formats.systemd import read_timers
from tests.agents_app.formats.reading import CONTEXT, MONTH, NOW, lines_of, new_month, old_month
from tests.parts.missing import missing

SERVICE = "[Unit]\nDescription=Backup\n[Service]\nType=oneshot\nExecStart=/usr/bin/backup --all\n"
CALENDARS = [
    "daily",
    "hourly",
    "weekly",
    "monthly",
    "quarterly",
    "yearly",
    "semiannually",
    "*-*-* 04:00:00",
    "*-*-* 4:30",
    "Mon..Fri 09:00",
    "Mon,Wed,Fri *-*-* 18:15:00",
    "Sat,Sun 10:00",
    "*:30",
    "*-*-* 0/2:0/30",
    "*-*-* 00/6:10:00",
    "08..18:00/30",
    "*-*-01,15 03:00",
    "*-*-1/10 03:00",
    "Mon *-*-1..7 09:00",
    "Tue,Thu *-*-8..21 09:00",
    "*-*~01 23:00",
    "Mon *-*~07/1 10:00",
    "*-03,06,09,12-01 00:00",
    "monday",
    "*-*-* 02:30:00",
    "*-*-* 02:30:00 America/New_York",
    "Fri *-*-13 00:00",
    "*-11-24 12:00",
]
STARTS = [NOW, datetime(2027, 3, 10, 0, 1, tzinfo=UTC), datetime(2026, 10, 12, 0, 1, tzinfo=UTC)]


def read(timer: str, service: str = SERVICE) -> Imported:
    services = {"backup.service": SourceFile("backup.service", service)}
    return read_timers([SourceFile("units/backup.timer", timer)], services.get, CONTEXT)


def oracle(calendar: str, start: datetime, count: int) -> list[datetime]:
    """The fires of a month; at most `count` of them are asked for."""
    if shutil.which("systemd-analyze") is None:
        missing("systemd-analyze", "apt-get install systemd")
    # A zone in the text itself would cost a process for each iteration.
    text, _, zone = calendar.partition(" America")
    base = start.strftime("%Y-%m-%d %H:%M:%S UTC")
    done = subprocess.run(
        ["systemd-analyze", "calendar", f"--iterations={count}", f"--base-time={base}", text],
        capture_output=True,
        text=True,
        env={"TZ": f"America{zone}" if zone else CONTEXT.host_zone, "PATH": "/usr/bin:/bin"},
        check=True,
    )
    found = re.findall(r"\(in UTC\): \w+ (\S+ \S+) UTC", done.stdout)
    fires = [datetime.fromisoformat(one).replace(tzinfo=UTC) for one in found]
    return [fire for fire in fires if fire <= start + MONTH]


# From systemd.time(7), by hand, in the zone of the host; on 28 March 2027 there is no 02:30.
BY_HAND = [
    ("daily", NOW, ["2026-11-19 00:00", "2026-11-20 00:00"]),
    ("weekly", NOW, ["2026-11-23 00:00", "2026-11-30 00:00"]),
    ("monthly", NOW, ["2026-12-01 00:00", "2027-01-01 00:00"]),
    ("quarterly", NOW, ["2027-01-01 00:00", "2027-04-01 00:00"]),
    ("semiannually", NOW, ["2027-01-01 00:00", "2027-07-01 00:00"]),
    ("Mon..Fri 09:00", NOW, ["2026-11-19 09:00", "2026-11-20 09:00", "2026-11-23 09:00"]),
    ("*-*-* 0/6:10", NOW, ["2026-11-18 12:10", "2026-11-18 18:10", "2026-11-19 00:10"]),
    ("*-*~01 23:00", NOW, ["2026-11-30 23:00", "2026-12-31 23:00"]),
    ("Mon *-*~07/1 10:00", NOW, ["2026-11-30 10:00", "2026-12-28 10:00"]),
    ("Mon *-*-1..7 09:00", NOW, ["2026-12-07 09:00", "2027-01-04 09:00"]),
    ("*-*-* 02:30", datetime(2027, 3, 27, 12, tzinfo=UTC), ["2027-03-29 02:30"]),
]


@pytest.mark.parametrize(("calendar", "start", "expected"), BY_HAND)
def test_a_calendar_event_fires_as_the_manual_says(calendar, start, expected):
    (agent,) = read(f"[Timer]\nOnCalendar={calendar}\n").agents
    new = new_fires(agent.schedules[0], start, CONTEXT.host_zone, len(expected))
    local = [fire.astimezone(ZoneInfo(CONTEXT.host_zone)) for fire in new]
    assert [f"{fire:%Y-%m-%d %H:%M}" for fire in local] == expected


@pytest.mark.parametrize("calendar", CALENDARS)
def test_a_calendar_event_fires_for_a_month_as_systemd_does(calendar):
    found = read(f"[Timer]\nOnCalendar={calendar}\n")
    assert found.errors == ()
    (schedule,) = found.agents[0].schedules
    for start in STARTS:
        fires = new_month(schedule, start)
        # Two more than Drover has, so that a fire that it lacks is noticed.
        expected = oracle(calendar, start, len(fires) + 2)
        if found.agents[0].body.startswith("case "):  # the script ends on other weekdays
            assert set(expected) <= set(fires)
            assert lines_of(found.report, "OnCalendar") == [2]
        else:
            assert fires == expected
        if "~" not in calendar:
            assert old_month(schedule, start) == expected


@pytest.mark.parametrize(
    "calendar",
    [
        "*/2:00",
        "25:00",
        "*-13-01",
        "*-*~03",
        "2027..2030-01-01",
        "*:*:0/7",
        "Mon..Blue 10:00",
        "Fri..Mon 10:00",
        "09:00 Mars/Olympus",
        "once upon a time",
        "00:00:00:00",
        "*-*-* 1/0:00",
    ],
)
def test_an_event_that_cannot_be_expressed_is_reported_with_its_line(calendar):
    found = read(f"[Timer]\nOnCalendar={calendar}\nOnCalendar=daily\n")
    assert [(error.line, error.field) for error in found.errors] == [(2, "OnCalendar")]
    assert [schedule.old for schedule in found.agents[0].schedules] == ["daily"]


def test_a_single_date_is_a_single_fire():
    (agent,) = read("[Timer]\nOnCalendar=2027-01-02 03:04:00\n").agents
    assert new_month(agent.schedules[0], datetime(2027, 1, 1, tzinfo=UTC)) == [
        datetime(2027, 1, 2, 2, 4, tzinfo=UTC)
    ]


@pytest.mark.parametrize(
    ("line", "expression"),
    [
        ("OnUnitActiveSec=15min", "every 15 minutes"),
        ("OnUnitActiveSec=1h 30min", "every 90 minutes"),
        ("OnUnitInactiveSec=90", "90s"),
        ("OnUnitInactiveSec=2h", "2h"),
        ("OnCalendar=*:*:0/15", "every 15 seconds"),
    ],
)
def test_spans_of_time_are_intervals(line, expression):
    (agent,) = read(f"[Timer]\nOnBootSec=5min\n{line}\n").agents
    assert [schedule.expression for schedule in agent.schedules] == [expression]


def test_settings_of_a_timer_become_policies_or_report_lines():
    found = read(
        "[Unit]\nDescription=Nightly backup\n[Timer]\nOnCalendar=daily\nOnBootSec=10min\n"
        "Persistent=true\nRandomizedDelaySec=30min\nAccuracySec=1us\nWakeSystem=true\n"
        "[Install]\nWantedBy=timers.target\n"
    )
    (agent,) = found.agents
    assert agent.description == "Nightly backup"
    settings = agent.schedules[0].settings
    assert (settings["catch_up"], settings["catch_up_window"]) == ("last", "366d")
    assert (settings["jitter"], settings["gap"]) == ("1800s", "skip")
    for name, line in (("OnBootSec", 5), ("AccuracySec", 8), ("WakeSystem", 9)):
        assert lines_of(found.report, name) == [line]


def test_a_template_stays_disabled_until_its_instance_is_written():
    services = {"backup@.service": SourceFile("backup@.service", SERVICE)}
    timer = SourceFile("backup@.timer", "[Timer]\nOnCalendar=daily\n")
    (agent,) = read_timers([timer], services.get, CONTEXT).agents
    assert (agent.name, agent.needs_work) == ("backup", True)
    assert not read("[Timer]\nOnCalendar=daily\n").agents[0].needs_work


def test_a_timer_that_is_not_persistent_makes_up_for_nothing():
    (agent,) = read("[Timer]\nOnCalendar=daily\n").agents
    assert agent.schedules[0].settings["catch_up"] == "skip"


# --- services -------------------------------------------------------------------------------


def script_of(service: str) -> str:
    (agent,) = read("[Timer]\nOnCalendar=daily\n", f"[Service]\n{service}\n").agents
    return agent.body


@pytest.mark.parametrize(
    ("line", "output"),
    [
        ("ExecStart=/bin/echo a  b", "a b\n"),
        ("ExecStart=/bin/echo 'a  b' \"c d\"", "a  b c d\n"),
        ("ExecStart=/bin/echo a;b | c > d `id` $$x", "a;b | c > d `id` $x\n"),
        ("ExecStart=/bin/echo $WORDS ${WORDS}", "x y x  y\n"),
        ('ExecStart=/bin/echo "${WORDS}-\\"q\\""', 'x  y-"q"\n'),
        ("ExecStart=/bin/echo 100%% %N", "100% backup\n"),
        ("ExecStart=/bin/echo \\\n  continued", "continued\n"),
        ("ExecStart=-/bin/false\nExecStartPost=/bin/echo after", "after\n"),
        ("ExecStartPre=/bin/echo before\nExecStart=/bin/echo it", "before\nit\n"),
        ("ExecStart=/bin/echo no\nExecStart=\nExecStart=/bin/echo yes", "yes\n"),
        ("WorkingDirectory=/usr/bin\nExecStart=/bin/pwd", "/usr/bin\n"),
    ],
)
def test_a_command_does_in_the_script_what_it_does_in_systemd(line, output):
    done = subprocess.run(
        ["sh", "-c", script_of(line)],
        env={"WORDS": "x  y", "PATH": "/usr/bin:/bin"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.stdout + done.stderr == output


def test_settings_of_a_service_become_fields_or_report_lines():
    service = (
        '[Service]\nType=oneshot\nUser=backup\nNice=10\nEnvironment=A=1 "B=x y" API_TOKEN=t\n'
        "EnvironmentFile=/etc/default/backup\nTimeoutStartSec=1h\nExecStart=/usr/bin/backup %i\n"
    )
    found = read("[Timer]\nOnCalendar=daily\n", service)
    (agent,) = found.agents
    assert agent.fields == {"timeout": "3600s", "env": {"A": "1", "B": "x y"}}
    reported = {(line.file, line.line, line.field) for line in found.report}
    assert reported == {
        ("backup.service", 3, "User"),
        ("backup.service", 4, "Nice"),
        ("backup.service", 5, "Environment"),
        ("backup.service", 6, "EnvironmentFile"),
        ("backup.service", 8, "ExecStart"),
    }


@pytest.mark.parametrize(
    ("timer", "service"),
    [
        ("[Timer]\nOnCalendar=daily\nUnit=other.service\n", SERVICE),
        ("[Timer]\nOnCalendar=daily\n", "[Service]\nType=oneshot\n"),
        ("[Unit]\nDescription=x\n", SERVICE),
        ("", SERVICE),
        ("\x00\x01garbage", SERVICE),
    ],
)
def test_a_timer_that_cannot_be_imported_is_an_error(timer, service):
    found = read(timer, service)
    assert found.agents == ()
    assert found.errors


def test_a_wrong_line_is_reported_and_the_rest_is_read():
    found = read("[Timer]\nnonsense\nOnCalendar=daily\n")
    assert [(error.line, error.field) for error in found.errors] == [(2, "line")]
    assert len(found.agents) == 1
