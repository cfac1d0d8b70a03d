"""The environment of a run: an allow-list, and variables that an agent cannot override."""

from pathlib import Path

import pytest

from agents_app.runners.environment import (
    LONGEST_PROMPT_VARIABLE,
    base_environment,
    run_environment,
)

SERVER = {
    "PATH": "/opt/bin:/bin",
    "HOME": "/home/drover",
    "LANG": "de_DE.UTF-8",
    "TERM": "xterm",
    "DATABASE_URL": "postgresql://drover:canary@db/drover",
    "DROVER_ADMIN_PASSWORD": "canary",
    "AWS_SECRET_ACCESS_KEY": "canary",
    "LD_PRELOAD": "/tmp/canary.so",
    "PYTHONPATH": "/srv/canary",
}


def environment(base=None, declared=None, **changes: object) -> dict[str, str]:
    facts: dict[str, object] = {
        "run_id": 7,
        "agent": "reporter",
        "agent_dir": "/project/agents/reporter",
        "state_dir": Path("/data/state/3"),
        "trigger": "schedule",
        "schedule_id": 5,
        "attempt": 2,
        "gateway_url": "http://127.0.0.1:8080",
        "gateway_socket": Path("/data/gateway/gateway.sock"),
        "signal_dir": "/data/runs/7/signals",
        "token": "drover_run_7_canary",
        "timeout_seconds": 90.0,
        "prompt": "Work.",
        "prompt_file": Path("/data/runs/7/prompt.md"),
        "trace_id": "ab" * 16,
        **changes,
    }
    return run_environment(base or {}, declared or {}, **facts)  # type: ignore[arg-type]


def test_only_allowed_variables_of_the_server_are_passed_on():
    assert base_environment(SERVER) == {
        "PATH": "/opt/bin:/bin",
        "HOME": "/home/drover",
        "LANG": "de_DE.UTF-8",
        "TERM": "xterm",
    }


def test_a_server_without_path_and_language_still_gives_both():
    base = base_environment({})
    assert base["LANG"] == "C.UTF-8"
    assert "/usr/bin" in base["PATH"]


def test_a_run_gets_its_ids_in_its_environment():
    env = environment()
    assert env["DROVER_RUN_ID"] == "7"
    assert (env["DROVER_AGENT"], env["DROVER_TRIGGER"]) == ("reporter", "schedule")
    assert (env["DROVER_SCHEDULE_ID"], env["DROVER_ATTEMPT"]) == ("5", "2")
    assert env["DROVER_PROMPT_FILE"] == "/data/runs/7/prompt.md"
    assert env["TIMEOUT_SECONDS"] == "90"


def test_a_run_without_a_schedule_has_an_empty_schedule_id():
    assert environment(schedule_id=None)["DROVER_SCHEDULE_ID"] == ""


def test_the_trace_parent_is_one_that_others_can_read():
    version, trace, parent, flags = environment()["TRACEPARENT"].split("-")
    assert (version, trace, flags) == ("00", "ab" * 16, "01")
    assert len(parent) == 16
    assert int(parent, 16) == 7


def test_declared_variables_win_over_the_servers_and_never_over_drovers():
    env = environment(
        {"LANG": "C.UTF-8", "PATH": "/bin"},
        {"LANG": "fr_FR.UTF-8", "DROVER_RUN_ID": "1", "DROVER_TRACE_ID": "x", "COLOUR": "blue"},
    )
    assert (env["LANG"], env["COLOUR"]) == ("fr_FR.UTF-8", "blue")
    assert (env["DROVER_RUN_ID"], env["DROVER_TRACE_ID"]) == ("7", "ab" * 16)


@pytest.mark.parametrize("letter", ["a", "ß", "漢", "🐑"])
def test_a_prompt_too_long_for_a_variable_is_only_in_its_file(letter):
    fits = letter * (LONGEST_PROMPT_VARIABLE // len(letter.encode()))
    assert environment(prompt=fits)["PROMPT"] == fits
    assert "PROMPT" not in environment(prompt=fits + letter)
    assert len(fits.encode()) < 128 * 1024 - len("PROMPT=")


def test_a_prompt_that_no_variable_can_hold_is_only_in_its_file():
    assert "PROMPT" not in environment(prompt="a\0b")
