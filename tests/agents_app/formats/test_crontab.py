"""Lines of crontabs as agents: schedules, variables, standard input, users, and wrong lines."""

import subprocess
from datetime import UTC, datetime
from itertools import takewhile
from zoneinfo import ZoneInfo

import pytest
from cronsim import CronSim

from agents_app.formats.crontab import is_system_crontab, read_crontab, split_percent
from agents_app.formats.imported import Imported
from agents_app.formats.old_cron import MACROS
from tests.agents_app.formats.reading import (
    CONTEXT,
    MONTH,
    NOW,
    SOURCES,
    agents_by_name,
    lines_of,
    new_month,
    old_month,
)

LARGE = (SOURCES / "large.crontab").read_text()
SYSTEM = (SOURCES / "system.crontab").read_text()


def read(text: str, *, system: bool = False) -> Imported:
    return read_crontab("crontab", text, CONTEXT, system=system)


def output_of(script: str) -> str:
    done = subprocess.run(["sh", "-c", script], capture_output=True, text=True, check=False)
    return done.stdout + done.stderr


# --- whole crontabs -------------------------------------------------------------------------


@pytest.mark.parametrize("start", [NOW, datetime(2027, 3, 10, tzinfo=UTC)])
def test_every_line_of_a_large_crontab_fires_for_a_month_as_the_oracle_does(start):
    found = read(LARGE)
    assert (len(found.agents), found.errors) == (32, ())
    for agent in found.agents:
        for schedule in (each for each in agent.schedules if each.old != "@reboot"):
            text = MACROS.get(schedule.old, schedule.old)
            clock = start.astimezone(ZoneInfo(schedule.timezone))
            fires = (fire.astimezone(UTC) for fire in CronSim(text, clock))
            expected = list(takewhile(lambda fire: fire <= start + MONTH, fires))
            assert old_month(schedule, start) == expected, schedule.old
            if agent.name == "monday-dates":  # its script ends on other weekdays
                assert set(expected) < set(new_month(schedule, start))
            else:
                assert new_month(schedule, start) == expected, schedule.old


def test_every_line_of_a_system_crontab_is_named_and_its_user_reported():
    found = read(SYSTEM, system=True)
    assert [agent.name for agent in found.agents] == [
        "run-parts-cron-hourly",
        "run-parts-cron-daily",
        "run-parts-cron-weekly",
        "run-parts-cron-monthly",
        "sessionclean",
    ]
    assert found.errors == ()
    assert lines_of(found.report, "user") == [5, 6, 7, 8, 9]
    assert agents_by_name(found)["run-parts-cron-hourly"].body == (
        "cd / && run-parts --report /etc/cron.hourly\n"
    )


def test_a_system_crontab_is_recognised_by_its_users():
    assert is_system_crontab(SYSTEM, CONTEXT.users)
    assert not is_system_crontab(LARGE, CONTEXT.users)
    assert not is_system_crontab("", CONTEXT.users)
    assert not is_system_crontab("0 5 * * * root\n", CONTEXT.users)


# --- schedules ------------------------------------------------------------------------------


def test_a_line_keeps_its_expression_and_says_the_zone_of_the_host():
    (agent,) = read("0 9 * * 1-5 /opt/report.sh --all\n").agents
    (schedule,) = agent.schedules
    assert (schedule.expression, schedule.timezone) == ("0 9 * * 1-5", "Europe/Berlin")
    # cron runs a line whose time is skipped after the change, and makes up for no downtime.
    assert schedule.settings == {"catch_up": "skip", "gap": "next_valid"}
    assert (agent.name, agent.line, agent.body) == ("report", 1, "/opt/report.sh --all\n")


def test_cron_tz_applies_to_the_lines_below_it():
    text = "0 1 * * * /bin/a\nCRON_TZ=Asia/Tokyo\n0 1 * * * /bin/b\nCRON_TZ=UTC\n0 1 * * * /bin/c\n"
    zones = [agent.schedules[0].timezone for agent in read(text).agents]
    assert zones == ["Europe/Berlin", "Asia/Tokyo", "UTC"]


def test_an_unknown_zone_is_reported_and_the_line_imported():
    found = read("CRON_TZ=Europe/Berlim\n0 1 * * * /bin/a\n")
    assert lines_of(found.report, "CRON_TZ") == [1]
    assert found.agents[0].schedules[0].timezone == "Europe/Berlin"


def test_reboot_fires_once_after_each_boot():
    found = read("@reboot /opt/start.sh\n")
    (schedule,) = found.agents[0].schedules
    assert (found.agents[0].name, schedule.old, schedule.expression) == (
        "start",
        "@reboot",
        "@reboot",
    )
    assert lines_of(found.report, "@reboot") == []


def test_days_that_cannot_be_expressed_are_checked_by_the_script():
    found = read("30 7 */10 * 1,4 echo started\n")
    (agent,) = found.agents
    assert lines_of(found.report, "day-of-week") == [1]
    today = datetime.now().isoweekday() % 7
    for day in range(7):
        script = agent.body.replace("date +%w", f"echo {day}")
        assert output_of(script) == ("started\n" if day in (1, 4) else "")
    assert output_of(agent.body) == ("started\n" if today in (1, 4) else "")


def test_the_check_of_weekdays_is_made_in_the_zone_of_the_line():
    (agent,) = read("CRON_TZ=Asia/Tokyo\n30 7 */10 * 1 true\n").agents
    assert "$(TZ=Asia/Tokyo date +%w)" in agent.body


# --- commands -------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("command", "shell", "stdin"),
    [
        ("echo a", "echo a", None),
        (r"date +\%F", "date +%F", None),
        ("cat%a%b", "cat", "a\nb"),
        ("cat%", "cat", ""),
        (r"cat%100\%%x", "cat", "100%\nx"),
        (r"echo \\ x", r"echo \\ x", None),
        (r"echo a\\%in", r"echo a\\", "in"),
        ("echo a\\", "echo a\\", None),
        (r"grep '\.log'", r"grep '\.log'", None),
    ],
)
def test_percent_signs_start_the_standard_input(command, shell, stdin):
    assert split_percent(command) == (shell, stdin)


def test_the_script_gives_the_command_its_standard_input():
    (agent,) = read("0 9 * * * cat | tr a-z A-Z%Hello,%END_OF_INPUT%$HOME `id`\n").agents
    assert output_of(agent.body) == "HELLO,\nEND_OF_INPUT\n$HOME `ID`\n"
    (agent,) = read("0 9 * * * wc -c # count%\n").agents
    assert output_of(agent.body).strip() == "0"


def test_variables_apply_to_the_lines_below_them():
    text = (
        "A=\"x y\"\n0 1 * * * /bin/a\nB = '1'\nSHELL=/bin/bash\nHOME=/srv/a b\n0 1 * * * /bin/b\n"
    )
    first, second = read(text).agents
    assert first.fields["env"] == {"A": "x y"}
    assert "command" not in first.fields
    assert second.fields["env"] == {"A": "x y", "B": "1", "HOME": "/srv/a b"}
    assert second.fields["command"] == ["/bin/bash", "./script.sh"]
    assert second.body == "cd '/srv/a b' || exit 1\n/bin/b\n"


def test_mail_and_other_settings_of_cron_are_reported():
    found = read("MAILTO=a@b.c\nLOGNAME=x\nDROVER_DATA=/x\n0 1 * * * /bin/a\n")
    for name, line in (("MAILTO", 1), ("LOGNAME", 2), ("DROVER_DATA", 3)):
        assert lines_of(found.report, name) == [line]
    assert "env" not in found.agents[0].fields


def test_a_variable_that_looks_like_a_secret_is_not_copied():
    found = read("OPENAI_API_KEY=sk-very-secret\n0 1 * * * /bin/a\n")
    assert lines_of(found.report, "OPENAI_API_KEY") == [1]
    assert "sk-very-secret" not in repr(found)


def test_the_comment_above_a_line_is_its_description():
    text = "# nightly backup\n0 1 * * * /bin/a\n\n# unrelated\n\n0 1 * * * /bin/b\n"
    assert [agent.description for agent in read(text).agents] == ["nightly backup", "Runs b"]


def test_claude_and_codex_run_with_their_harness():
    agents = agents_by_name(read(LARGE))
    claude = agents["claude-summarise-the-open-pull-requests"]
    assert (claude.harness, claude.body) == ("claude-code", "Summarise the open pull requests.")
    assert claude.fields["model"] == "opus"
    # A directory to start in has no counterpart: the whole line stays a script.
    codex = next(agent for agent in agents.values() if agent.name.startswith("codex"))
    assert (codex.harness, codex.body[:15]) == ("shell", "cd /srv/app && ")
    assert lines_of(read(LARGE).report, "redirection") == [48]


def test_equal_names_have_keys_of_their_own():
    keys = [agent.key for agent in read("0 1 * * * /a/x\n0 2 * * * /b/x\n0 3 * * * /y\n").agents]
    assert keys == ["x", "x#2", "y"]


# --- wrong lines ----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("line", "field"),
    [
        ("0 9 * *", "line"),
        ("hello world", "line"),
        ("61 * * * * /bin/a", "minute"),
        ("@fortnightly /bin/a", "macro"),
        ("0 9 * * * ", "line"),
        ("0 9 * * 1-5\0 /bin/a", "line"),
        ("0 9 * * * /bin/\udcff", "line"),
    ],
)
def test_a_wrong_line_is_reported_and_the_others_are_imported(line, field):
    found = read(f"0 1 * * * /bin/a\n{line}\n0 2 * * * /bin/b\n")
    assert [agent.name for agent in found.agents] == ["a", "b"]
    assert [(error.line, error.field) for error in found.errors] == [(2, field)]


def test_a_system_line_without_a_command_is_reported():
    found = read("0 1 * * * root\n0 1 * * * /bin/x y\n0 1 * * * root /bin/a\n", system=True)
    assert [(error.line, error.field) for error in found.errors] == [(1, "user"), (2, "user")]
    assert [agent.name for agent in found.agents] == ["a"]


def test_a_last_line_without_a_newline_is_reported():
    assert lines_of(read("0 1 * * * /bin/a").report, "line end") == [1]
