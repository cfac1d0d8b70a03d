"""`import` of every format: a dry run, an import, another one, a change, and --enable."""

from pathlib import Path
from typing import Any

import pytest

from agents_app.formats import FORMATS
from agents_app.skills import discover_project
from tests.agents_app.formats.small_sources import CASES
from tests.agents_app.formats.written import write
from tests.agents_app.management.calling import call

# The agents of Arbiter are in the project before its schedules.
OWN_AGENT = "---\nharness: shell\nscale: 1\n---\ntrue\n"


@pytest.fixture
def fleet(tmp_path: Path) -> Path:
    return write(tmp_path / "fleet", {"agents/index/SKILL.md": OWN_AGENT})


def run_import(source: Path, fleet: Path, *options: str) -> dict[str, Any]:
    said = call("import", str(source), "--into", str(fleet), "--json", *options)
    assert said.code == 0
    document: dict[str, Any] = said.json
    return document


def files_of(fleet: Path) -> dict[str, tuple[str, int]]:
    return {
        path.relative_to(fleet).as_posix(): (path.read_text(), path.stat().st_mtime_ns)
        for path in fleet.rglob("*")
        if path.is_file()
    }


def test_there_is_a_source_of_every_format():
    assert {name for name, _, _ in CASES} == set(FORMATS)


@pytest.mark.parametrize(("name", "files", "source"), CASES)
def test_an_import_is_disabled_first_and_a_second_one_changes_nothing(
    tmp_path: Path, fleet: Path, name, files, source
):
    place = write(tmp_path / "source", files) / source
    before = files_of(fleet)
    planned = run_import(place, fleet, "--dry-run")
    assert (planned["format"], planned["dry_run"], planned["errors"]) == (name, True, [])
    assert files_of(fleet) == before

    document = run_import(place, fleet)
    assert [agent["state"] for agent in document["agents"]] == ["created"]
    (agent,) = document["agents"]
    assert not agent["enabled"]
    config = (fleet / "agents" / agent["name"] / "config.toml").read_text()
    assert config.startswith("# Imported from ")
    off = "enabled = false" if name == "arbiter" else "scale = 0"
    assert off in config
    # Arbiter says when the next fire is; the sample does not.
    assert name == "arbiter" or all(one["same_fires"] for one in agent["schedules"])

    after = files_of(fleet)
    document = run_import(place, fleet)
    assert [agent["state"] for agent in document["agents"]] == ["unchanged"]
    assert files_of(fleet) == after


@pytest.mark.parametrize(("name", "files", "source"), CASES)
def test_enable_writes_the_agents_enabled(tmp_path: Path, fleet: Path, name, files, source):
    place = write(tmp_path / "source", files) / source
    run_import(place, fleet)
    (agent,) = run_import(place, fleet, "--enable")["agents"]
    specs = {spec.name: spec for spec in discover_project(fleet).agents}
    spec = specs[agent["name"]]
    # The steps of a workflow remain to be written.
    assert agent["enabled"] == (name != "github-actions")
    assert spec.scale == (0 if name == "github-actions" else 1)
    assert all(schedule.enabled for schedule in spec.schedules)


@pytest.mark.parametrize(("name", "files", "source"), CASES)
def test_an_edited_file_is_left_when_the_source_changes(
    tmp_path: Path, fleet: Path, name, files, source
):
    place = write(tmp_path / "source", files) / source
    (agent,) = run_import(place, fleet)["agents"]
    config = fleet / "agents" / agent["name"] / "config.toml"
    config.write_text(config.read_text() + "# mine\n")
    before = config.read_text()
    changes = {"0 9 ": "5 9 ", "0 8 ": "5 8 ", "daily": "weekly", "at 09:00": "at 10:00"}
    changes |= {"sleep 1h": "sleep 2h", "model: opus": "model: haiku"}
    for path, text in files.items():
        for old, new in changes.items():
            text = text.replace(old, new)
        write(tmp_path / "source", {path: text})
    document = run_import(place, fleet)
    assert [agent["state"] for agent in document["agents"]] == ["edited"]
    assert config.read_text() == before
    assert f"agents/{agent['name']}/config.toml" in [line["file"] for line in document["report"]]


@pytest.mark.parametrize(("name", "files", "source"), CASES)
def test_a_source_is_the_same_however_it_is_named(
    tmp_path: Path, fleet: Path, monkeypatch: pytest.MonkeyPatch, name, files, source
):
    place = write(tmp_path / "source", files) / source
    run_import(place, fleet)
    monkeypatch.chdir(place.parent)
    document = run_import(Path(place.name), fleet)
    assert [agent["state"] for agent in document["agents"]] == ["unchanged"]
