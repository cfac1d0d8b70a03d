"""`import` of damaged sources: each problem with file and line, the rest imported, no traceback."""

import json
import os
from pathlib import Path
from typing import Any

import pytest

from tests.agents_app.management.calling import Said, call

GOOD_ROW = {"name": "good", "cron_expression": "0 9 * * *", "command": "true"}
GOOD_TASK = {"id": 7, "agent": "good", "schedule_phrase": "every day at 09:00", "message": "m"}
WRONG_VALUES: list[Any] = [None, 5, True, [], {}, ["x"], {"a": 1}, "", "\ud800", 10**400]
TIMER = "[Timer]\nOnCalendar=daily\n"
SERVICE = "[Service]\nExecStart=/bin/true\n"
WORKFLOW = "on: {schedule: [{cron: '0 8 * * *'}]}\njobs: {}\n"


@pytest.fixture
def fleet(tmp_path: Path) -> Path:
    agent = tmp_path / "fleet/agents/good/SKILL.md"
    agent.parent.mkdir(parents=True)
    agent.write_text("---\nharness: shell\n---\ntrue\n")
    return tmp_path / "fleet"


@pytest.fixture
def source(tmp_path: Path) -> Path:
    (tmp_path / "source").mkdir()
    return tmp_path / "source"


def write(directory: Path, files: dict[str, str | bytes]) -> None:
    for name, content in files.items():
        path = directory / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content.encode() if isinstance(content, str) else content)


def run_import(source: Path | str, into: Path, *options: str) -> Said:
    return call("import", str(source), "--into", str(into), *options)


def document_of(source: Path, into: Path, *options: str) -> dict[str, Any]:
    said = run_import(source, into, "--json", *options)
    document: dict[str, Any] = said.json
    # Exit status 1 if and only if a part was left out, and the same without --json.
    assert said.code == bool(document["errors"])
    assert run_import(source, into, *options).code == said.code
    for error in document["errors"]:
        assert error["file"]
        assert error["why"]
        assert error["advice"]
    return document


def places(document: dict[str, Any]) -> list[tuple[str, int]]:
    return [(Path(error["file"]).name, error["line"]) for error in document["errors"]]


def names(document: dict[str, Any]) -> list[str]:
    return [agent["name"] for agent in document["agents"] if agent["state"] != "refused"]


# --- JSON -----------------------------------------------------------------------------------


@pytest.mark.parametrize("field", ["name", "cron_expression", "command"])
def test_wrong_types_in_rows_of_genie_are_errors_of_their_lines(source, fleet, field):
    rows = [
        GOOD_ROW,
        *({**GOOD_ROW, field: value} for value in WRONG_VALUES),
        5,
        None,
        [],
        GOOD_ROW,
    ]
    write(source, {"x.json": "[\n" + ",\n".join(map(json.dumps, rows)) + "\n]"})
    document = document_of(source / "x.json", fleet)
    wrong = {line for _, line in places(document)}
    assert 2 not in wrong
    assert {3, 4, 5, 6, 13, 14, 15} <= wrong
    assert "good-2" in names(document)


@pytest.mark.parametrize("field", ["schedule_phrase", "message", "agent"])
def test_wrong_types_in_schedules_of_arbiter_are_errors_of_their_lines(source, fleet, field):
    rows = [GOOD_TASK, *({**GOOD_TASK, field: value} for value in WRONG_VALUES), 5, None, []]
    text = '{"schedules": [\n' + ",\n".join(map(json.dumps, rows)) + "\n]}"
    write(source, {"x.json": text})
    document = document_of(source / "x.json", fleet)
    wrong = {line for _, line in places(document)}
    assert {4, 5, 6, 13, 14, 15} <= wrong
    assert names(document)[:1] == ["good"]


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ('[\n{"cron_expression": "0 9 * * *",\n', 3),
        ('[\n{"cron_expression": }]', 2),
        ('{"cron_expression": ' + "[" * 100_000, 1),
        ('[{"cron_expression": ' + "9" * 10_000 + "}]", 1),
        ('[{"cron_expression": NaN}]', 1),
    ],
)
def test_damaged_json_is_an_error_of_its_line(source, fleet, text, line):
    write(source, {"x.json": text})
    document = document_of(source / "x.json", fleet)
    assert places(document)[0] == ("x.json", line)
    assert names(document) == []


# --- YAML -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("files", "place"),
    [
        ({"herdctl.yaml": "- a\n"}, ("herdctl.yaml", 1)),
        ({"herdctl.yaml": "agents: 5\n"}, ("herdctl.yaml", 1)),
        ({"herdctl.yaml": "\nagents:\n  - path: [a]\n"}, ("herdctl.yaml", 3)),
        ({"herdctl.yaml": "agents:\n  - path: none.yaml\n"}, ("herdctl.yaml", 2)),
        ({"herdctl.yaml": "agents:\n  - path: ../../x.yaml\n"}, ("herdctl.yaml", 2)),
        ({"herdctl.yaml": "fleets:\n  - path: herdctl.yaml\n"}, ("herdctl.yaml", 2)),
        ({"herdctl.yaml": b"\x7fELF\0\1\2\n"}, ("herdctl.yaml", 1)),
        ({"herdctl.yaml": "a: [\n"}, ("herdctl.yaml", 2)),
        ({"herdctl.yaml": "x" * 100_000}, ("herdctl.yaml", 0)),
    ],
)
def test_damage_in_a_fleet_is_an_error_of_its_line(source, fleet, files, place):
    write(source, files)
    document = document_of(source, fleet)
    assert (document["format"], places(document)[0]) == ("herdctl", place)


def test_agents_behind_links_and_fifos_are_errors_and_the_others_are_imported(
    source, fleet, tmp_path
):
    paths = "".join(f"  - path: {name}.yaml\n" for name in ("link", "pipe", "wrong", "fine"))
    write(source, {"herdctl.yaml": f"agents:\n{paths}", "fine.yaml": "name: fine\n"})
    write(source, {"wrong.yaml": "name: wrong\nschedules:\n  a: {type: cron, cron: [1]}\n"})
    write(tmp_path, {"outside.yaml": "name: outside\n"})
    (source / "link.yaml").symlink_to(tmp_path / "outside.yaml")
    os.mkfifo(source / "pipe.yaml")
    document = document_of(source, fleet)
    assert names(document) == ["fine"]
    assert {("link.yaml", 0), ("pipe.yaml", 0), ("wrong.yaml", 3)} == set(places(document))


def test_an_agent_of_action_llama_that_is_a_link_out_of_the_project_is_an_error(
    source, fleet, tmp_path
):
    write(tmp_path, {"outside.md": "Secret.\n"})
    model = '[models.opus]\nprovider = "anthropic"\nmodel = "opus"\n'
    write(source, {"config.toml": model, "agents/fine/SKILL.md": "---\nmodels: [opus]\n---\nGo.\n"})
    (source / "agents/link").mkdir()
    (source / "agents/link/SKILL.md").symlink_to(tmp_path / "outside.md")
    write(source, {"agents/wrong/SKILL.md": "---\nmodels: [opus]\nscale: many\n---\nGo.\n"})
    document = document_of(source, fleet)
    assert (document["format"], names(document)) == ("action-llama", ["fine"])
    assert {(error["file"], error["line"]) for error in document["errors"]} == {
        ("agents/link/SKILL.md", 0),
        ("agents/wrong/SKILL.md", 3),
    }


def test_damaged_workflows_are_errors_and_the_others_are_imported(source, fleet, tmp_path):
    workflows = source / ".github/workflows"
    deep = "on:\n  schedule: " + "[" * 500 + "\njobs: {}\n"
    write(
        workflows,
        {
            "fine.yml": WORKFLOW,
            "binary.yml": b"\0\1\2\3" * 100,
            "deep.yml": deep,
            "twice.yml": "on: push\non: push\njobs: {}\n",
            "types.yml": "on: {schedule: {cron: 1}}\njobs: 5\n",
        },
    )
    write(tmp_path, {"outside.yml": WORKFLOW})
    (workflows / "link.yml").symlink_to(tmp_path / "outside.yml")
    document = document_of(source, fleet)
    assert names(document) == ["fine"]
    wrong = {Path(file).name for file, _ in places(document)}
    assert wrong == {"binary.yml", "deep.yml", "twice.yml", "types.yml", "link.yml"}


# --- units, scripts and crontabs ------------------------------------------------------------


def test_timers_without_a_usable_service_are_errors(source, fleet, tmp_path):
    units = {f"{name}.timer": TIMER for name in ("fine", "link", "pipe", "none", "binary")}
    write(source, {**units, "fine.service": SERVICE, "binary.service": b"\0\1" * 100})
    write(tmp_path, {"outside.service": SERVICE})
    (source / "link.service").symlink_to(tmp_path / "outside.service")
    os.mkfifo(source / "pipe.service")
    document = document_of(source, fleet)
    assert names(document) == ["fine"]
    assert {name.partition(".")[0] for name, _ in places(document)} == {
        *("link", "pipe", "none", "binary")
    }


@pytest.mark.parametrize(
    "text",
    [
        b"#!/bin/sh\nwhile true; do claude -p 'x",
        b"#!/bin/sh\n" + b"claude " * 100_000,
        b"#!/bin/sh\n\xff\xfe claude -p x\n",
        b"#!/bin/bash\n" + b"while true; do\n" * 2000,
    ],
)
def test_a_script_that_cannot_be_understood_is_an_error(source, fleet, text):
    write(source, {"x.sh": text})
    document = document_of(source / "x.sh", fleet)
    assert names(document) == []
    assert places(document)[0][0] == "x.sh"


@pytest.mark.parametrize(
    ("text", "line"),
    [
        (b"0 1 * * * /bin/fine\n0 2 * * * " + b"x" * 1_000_000 + b"\n", 2),
        (b"0 1 * * * /bin/fine\n" + b"* " * 500_000 + b"\n61 * * * * x\n", 3),
        (b"\xef\xbb\xbf0 1 * * * /bin/fine\r\nwrong\r\n", 2),
        (b"0 1 * * * /bin/fine\n" + b"," * 100_000 + b" * * * * x\n", 2),
    ],
)
def test_a_line_of_a_crontab_that_is_too_much_is_an_error(source, fleet, text, line):
    write(source, {"tab": text})
    document = document_of(source / "tab", fleet)
    assert "fine" in names(document)
    assert line in [line for _, line in places(document)]


def test_a_text_in_another_encoding_is_an_error(source, fleet):
    write(source, {"tab": "0 1 * * * /bin/fine\n".encode("utf-16")})
    assert places(document_of(source / "tab", fleet)) != []


# --- files that are no files ----------------------------------------------------------------


def test_a_fifo_a_device_and_a_huge_file_are_not_read(source, fleet):
    os.mkfifo(source / "pipe")
    with (source / "huge").open("wb") as file:
        file.truncate(2**40)
    for path in (source / "pipe", source / "huge", Path("/dev/zero")):
        assert places(document_of(path, fleet)) == [(path.name, 0)]


def test_endless_input_is_not_read_to_its_end(fleet, monkeypatch: pytest.MonkeyPatch):
    with Path("/dev/zero").open() as zero:
        monkeypatch.setattr("sys.stdin", zero)
        said = run_import("-", fleet)
    assert said.code == 1
    assert "standard input has more than" in said.err


def test_a_project_that_cannot_be_written_is_refused_in_one_line(source, fleet):
    write(source, {"tab": "0 1 * * * /bin/fine\n"})
    (source / "file").write_text("x")
    said = run_import(source / "tab", source / "file")
    assert said.code == 1
    assert len(said.err.strip().splitlines()) == 1
