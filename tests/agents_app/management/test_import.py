"""`import`: the table, the report and the JSON; sources of all kinds, and bad ones."""

import io
import json
import os
from pathlib import Path
from typing import Any

import pytest

from agents_app.skills import discover_project
from agents_app.triggers import parse_cron
from tests.agents_app.management.calling import Said, call

CRONTAB = """# nightly
MAILTO=me@example.com
15 2 * * * /usr/bin/backup --all
0 9 1-7 * */7 /usr/bin/first-sunday
wrong
"""


@pytest.fixture
def crontab(tmp_path: Path) -> Path:
    path = tmp_path / "my.crontab"
    path.write_text(CRONTAB)
    return path


@pytest.fixture
def fleet(tmp_path: Path) -> Path:
    return tmp_path / "fleet"


def run_import(source: Path | str, into: Path, *options: str) -> Said:
    return call("import", str(source), "--into", str(into), *options)


def test_the_table_shows_old_and_new_with_their_fires(crontab: Path, fleet: Path):
    said = run_import(crontab, fleet)
    assert said.code == 1  # a line was left out
    lines = said.out.splitlines()
    assert lines[0] == f"crontab of a user {crontab} -> {fleet}"
    rows = [line for line in lines if "my.crontab:" in line and "02:15" in line]
    assert rows[0].split()[:5] == [f"{crontab}:3", "15", "2", "*", "*"]
    assert rows[0].rstrip().endswith("the same")
    assert "0 9 * * 0#1" in said.out
    assert "agents: 2 created" in said.out
    assert "MAILTO: Drover sends no mail" in said.out
    assert said.err.startswith("Not imported (1):")
    assert f"{crontab}:5: line: expected five fields" in said.err


def test_json_has_the_same_with_stable_names(crontab: Path, fleet: Path):
    said = run_import(crontab, fleet, "--json")
    document = said.json
    assert said.code == 1
    assert list(document) == ["source", "format", "into", "dry_run", "agents", "report", "errors"]
    agent = document["agents"][0]
    assert list(agent) == [
        "name",
        "state",
        "enabled",
        "file",
        "line",
        "harness",
        "files",
        "schedules",
    ]
    assert (agent["name"], agent["state"], agent["enabled"]) == ("backup", "created", False)
    assert [file["path"] for file in agent["files"]] == [
        "agents/backup/SKILL.md",
        "agents/backup/config.toml",
    ]
    (schedule,) = agent["schedules"]
    assert len(schedule["old_fires"]) == 3
    assert schedule["old_fires"] == schedule["new_fires"]
    assert schedule["same_fires"] is True
    assert list(document["errors"][0]) == ["file", "line", "field", "why", "advice"]
    assert document["errors"][0]["line"] == 5


def test_a_second_import_changes_nothing(crontab: Path, fleet: Path):
    run_import(crontab, fleet)
    before = {path: path.read_bytes() for path in fleet.rglob("*") if path.is_file()}
    document = run_import(crontab, fleet, "--json").json
    assert {agent["state"] for agent in document["agents"]} == {"unchanged"}
    assert {path: path.read_bytes() for path in fleet.rglob("*") if path.is_file()} == before


def test_a_dry_run_writes_nothing(crontab: Path, fleet: Path):
    said = run_import(crontab, fleet, "--dry-run")
    assert "2 created (dry run: nothing written)" in said.out
    assert not fleet.exists()


def test_enable_writes_agents_that_run(crontab: Path, fleet: Path):
    assert "until you enable them" in run_import(crontab, fleet).out
    assert "until you enable them" not in run_import(crontab, fleet, "--enable").out
    assert {agent.scale for agent in discover_project(fleet).agents} == {1}


def test_the_project_of_this_installation_is_the_default(project: Path, crontab: Path):
    assert call("import", str(crontab), "--json").json["into"] == str(project)
    assert (project / "agents/backup/SKILL.md").exists()


class Pipe:
    def __init__(self, data: bytes) -> None:
        self.buffer = io.BytesIO(data)


def test_the_output_of_crontab_is_read_from_a_pipe(fleet: Path, monkeypatch: Any):
    monkeypatch.setattr("sys.stdin", Pipe(b"5 1 * * * /usr/bin/backup\n"))
    said = run_import("-", fleet)
    assert said.code == 0
    assert said.out.startswith("crontab of a user from standard input -> ")
    assert "standard input:1" in said.out


def test_cron_d_is_read_file_by_file(tmp_path: Path, fleet: Path):
    cron_d = tmp_path / "cron.d"
    cron_d.mkdir()
    (cron_d / "one").write_text("5 1 * * * root /usr/bin/one\n")
    (cron_d / "two").write_text("5 1 * * * www-data /usr/bin/one -2\n")
    (cron_d / "old.bak").write_text("5 1 * * * root /usr/bin/old\n")
    document = run_import(cron_d, fleet, "--json").json
    assert document["format"] == "system-crontab"
    assert [(agent["name"], agent["file"]) for agent in document["agents"]] == [
        ("one", "one"),
        ("one-2", "two"),
    ]
    assert "old.bak" in [line["file"] for line in document["report"]]


def test_a_system_crontab_of_another_name_needs_its_format(tmp_path: Path, fleet: Path):
    path = tmp_path / "jobs.txt"
    path.write_text("5 1 * * * deploy /usr/bin/one\n")
    document = run_import(path, fleet, "--format", "system-crontab", "--json").json
    assert document["agents"][0]["name"] == "one"


# --- projects -------------------------------------------------------------------------------

HERD = Path(__file__).parent.parent / "formats/projects/company"


def test_a_project_of_herdctl_is_written_with_the_same_fires(fleet: Path):
    said = run_import(HERD, fleet)
    assert (said.code, said.out.splitlines()[0]) == (0, f"herdctl project {HERD} -> {fleet}")
    assert "the same" in said.out
    agents = run_import(HERD, fleet, "--json").json["agents"]
    assert {agent["state"] for agent in agents} == {"unchanged"}
    assert all(one["same_fires"] for agent in agents for one in agent["schedules"])


def test_a_project_is_not_imported_into_itself(tmp_path: Path):
    (tmp_path / "agents/a").mkdir(parents=True)
    (tmp_path / "agents/a/SKILL.md").write_text("---\nmodels: [opus]\n---\nGo.\n")
    said = run_import(tmp_path, tmp_path)
    assert said.code == 1
    assert "is the project itself; Drover runs it as it is" in said.err
    assert [path.name for path in (tmp_path / "agents").iterdir()] == ["a"]


# --- bad sources ----------------------------------------------------------------------------


def test_a_schedule_that_can_never_fire_is_refused_and_the_rest_imported(
    tmp_path: Path, fleet: Path
):
    path = tmp_path / "tab"
    path.write_text("0 0 31 2 * /usr/bin/never\n0 1 * * * /usr/bin/often\n")
    document = run_import(path, fleet, "--json").json
    assert [(agent["name"], agent["state"]) for agent in document["agents"]] == [
        ("never", "refused"),
        ("often", "created"),
    ]
    assert [error["line"] for error in document["errors"]] == [1]
    assert run_import(path, fleet).code == 1


def test_a_source_that_does_not_exist_is_refused(tmp_path: Path, fleet: Path):
    said = run_import(tmp_path / "none", fleet)
    assert said.code == 1
    assert "No such file or directory; name a file, a directory, or -" in said.err


def test_a_directory_without_a_known_format_is_refused(tmp_path: Path, fleet: Path):
    (tmp_path / "empty").mkdir()
    said = run_import(tmp_path / "empty", fleet)
    assert said.code == 1
    assert "is in none of the formats" in said.err


def test_a_binary_file_is_one_line_of_the_report(tmp_path: Path, fleet: Path):
    path = tmp_path / "program"
    path.write_bytes(b"\x7fELF\n" + bytes(range(256)) * 50)
    document = run_import(path, fleet, "--json").json
    assert document["agents"] == []
    assert [(error["line"], error["why"]) for error in document["errors"]] == [
        (2, "is a binary file")
    ]


def test_ten_thousand_lines_with_errors_and_nul_are_imported(tmp_path: Path, fleet: Path):
    path = tmp_path / "crontab.txt"
    lines = [f"{n % 70} 3 * * * /opt/job-{n % 50}" for n in range(10_000)]
    lines[17] = "0 1 * * * /opt/nul\0"
    path.write_text("\n".join(lines) + "\n")
    said = run_import(path, fleet, "--dry-run")
    assert said.code == 1
    assert "more: --json lists all" in said.err
    wrong = sum(n % 70 >= 60 for n in range(10_000)) + 1
    assert f"agents: {10_000 - wrong} created" in said.out
    assert f"Not imported ({wrong}):" in said.err


def test_every_expression_of_a_large_file_is_parsed_once(tmp_path: Path, fleet: Path):
    lines = [f"{n % 60} {n // 60} {n % 28 + 1} * * /opt/job" for n in range(600)]
    (tmp_path / "crontab.txt").write_text("\n".join(lines) + "\n")
    before = parse_cron.cache_info().misses
    run_import(tmp_path / "crontab.txt", fleet, "--dry-run")
    assert 0 < parse_cron.cache_info().misses - before <= len(lines)


def test_a_report_line_about_a_whole_file_has_no_empty_field(tmp_path: Path, fleet: Path):
    crew = tmp_path / "crew" / ".crew"
    crew.mkdir(parents=True)
    (crew / "scheduler.rules").write_text("")
    (crew / "scheduler.state.json").write_text("{}")
    (tmp_path / "crew/config.toml").write_text("[models.m]\nprovider = 'openai'\nmodel = 'x'\n")
    (tmp_path / "crew/agents/a").mkdir(parents=True)
    (tmp_path / "crew/agents/a/SKILL.md").write_text("---\nmodels: [m]\n---\nWork.\n")
    said = run_import(tmp_path / "crew", fleet)
    assert "  .crew/scheduler.state.json: is not read: " in said.out


def test_schedules_for_existing_agents_are_called_disabled_and_not_the_agents(
    tmp_path: Path, fleet: Path
):
    (fleet / "greeter").mkdir(parents=True)
    (fleet / "greeter" / "SKILL.md").write_text("---\nharness: shell\n---\ntrue\n")
    row = {"id": 1, "agent_id": "greeter", "schedule_phrase": "every hour", "message": "hello"}
    (tmp_path / "arbiter.json").write_text(json.dumps({"schedules": [row]}))
    said = run_import(tmp_path / "arbiter.json", fleet)
    assert "Imported schedules are disabled (enabled = false) until you enable them." in said.out
    assert "Imported agents" not in said.out


def test_links_fifos_and_unreadable_files_of_a_directory_are_reported(tmp_path: Path, fleet: Path):
    cron_d, outside = tmp_path / "cron.d", tmp_path / "outside"
    cron_d.mkdir()
    outside.write_text("5 1 * * * root /usr/bin/secret\n")
    (cron_d / "link").symlink_to(outside)
    (cron_d / "dangling").symlink_to(tmp_path / "nothing")
    (cron_d / "loop").symlink_to(cron_d / "loop")
    os.mkfifo(cron_d / "pipe")
    (cron_d / "closed").write_text("5 1 * * * root /usr/bin/closed\n")
    (cron_d / "closed").chmod(0)
    (cron_d / "good").write_text("5 1 * * * root /usr/bin/good\n")
    document = run_import(cron_d, fleet, "--json").json
    reported = {error["file"] for error in document["errors"]}
    # Root reads closed files, too.
    names = {agent["name"] for agent in document["agents"]}
    assert (reported - {"closed"}, names - {"closed"}) == (
        {"link", "dangling", "loop", "pipe"},
        {"good"},
    )
    assert "closed" in reported | names


def test_control_characters_of_a_source_do_not_reach_the_terminal(tmp_path: Path, fleet: Path):
    path = tmp_path / "tab"
    path.write_text("0 1 * * * /bin/a \x1b[31m\n\x1b]0;title\x07 wrong\n")
    said = run_import(path, fleet)
    assert "\x1b" not in said.out + said.err


def test_damaged_options_are_refused(crontab: Path, fleet: Path):
    assert run_import(crontab, fleet, "--format", "yaml").code != 0


def test_the_document_is_one_json_document_also_with_errors(tmp_path: Path, fleet: Path):
    path = tmp_path / "tab"
    path.write_bytes(b"\xff\xfe wrong\n0 1 * * * /bin/a\n")
    said = run_import(path, fleet, "--json")
    assert [error["line"] for error in json.loads(said.out)["errors"]] == [1]
