"""Broken projects of herdctl: an error with file and line, and the other agents still work."""

import os
import time
from pathlib import Path

import pytest

from agents_app.formats import ProjectDiscovery, read_project
from tests.agents_app.formats.written import NO_VARIABLES, agent_of, errors_of, write

GOOD = "name: good\nschedules:\n  hourly: {type: cron, cron: '@hourly'}\n"
FLEET = "agents:\n  - path: good.yaml\n"


def read(root: Path, **env: str) -> ProjectDiscovery:
    return read_project(root, server=env or NO_VARIABLES)


def broken(tmp_path: Path, fleet: str, files: dict[str, str | bytes]) -> ProjectDiscovery:
    """What is read of a project with one good agent and something that is wrong."""
    write(tmp_path, {"herdctl.yaml": FLEET + fleet, "good.yaml": GOOD, **files})
    found = read(tmp_path)
    assert [agent.name for agent in found.agents] == ["good"]
    return found


BAD_AGENT = "  - path: bad.yaml\n"


@pytest.mark.parametrize(
    ("text", "error"),
    [
        ("name: [a]\n", "bad.yaml:1: name: must be text, not a list"),
        ("name: bad\nscheduels: {}\n", "bad.yaml:2: scheduels: unknown field; did you mean 'sche"),
        ("- name: bad\n", "bad.yaml:1: must be a table of fields (name: value)"),
        ("name: bad\nmodel: 4\n", "bad.yaml:2: model: must be text, not 4"),
        ("name: bad\nschedules: [a]\n", "bad.yaml:2: schedules: must be a table, not a list"),
        (
            "name: bad\nschedules:\n  x:\n    type: daily\n",
            "bad.yaml:4: schedules.x.type: must be interval, cron, webhook, chat, not 'daily'",
        ),
        (
            "name: bad\nschedules:\n  x:\n    type: interval\n    interval: bogus\n",
            "bad.yaml:5: schedules.x.interval: ",
        ),
        ("name: bad\nschedules:\n  x: {type: cron, cron: 61 * * * *}\n", "bad.yaml:3: "),
        ("name: bad\ndocker: {volumes: ['/:/host']}\n", "bad.yaml:2: docker: volumes: unknown"),
        ("name: bad\ninstances: {max_concurrent: 0}\n", "bad.yaml:2: instances.max_concurrent: "),
        ("name: default\n", "bad.yaml:1: name: the agent name 'default' is reserved"),
        ("name: good\n", "bad.yaml:1: name: agent 'good' is also defined in good.yaml; rename one"),
        ("name: bad\nsystem_prompt: ${NOWHERE}\n", "bad.yaml:2: system_prompt: the variable NOWH"),
        ("name: bad\nsystem_prompt: 'a\n", "bad.yaml:2:16: is not YAML: this quote is not closed"),
        ("name: bad\nmodel: *nothing\n", "bad.yaml:2: there is no value &nothing above this line"),
        (b"name: \xff\xfe\n", "bad.yaml:1: is not UTF-8: byte 0xff at offset 6"),
        (b"\x7fELF\x00\x01", "bad.yaml:1: contains a NUL character"),
        ("", "bad.yaml: name: is missing"),
    ],
)
def test_a_broken_agent_file_is_an_error_with_its_line(tmp_path, text, error):
    (found,) = errors_of(broken(tmp_path, BAD_AGENT, {"bad.yaml": text}))
    assert found.startswith(error)


def test_a_second_agent_with_the_name_does_not_break_the_first(tmp_path):
    found = broken(tmp_path, BAD_AGENT, {"bad.yaml": "name: Good\n"})
    assert (found.broken, found.complete) == ({}, True)


def test_all_errors_of_an_agent_are_named_at_once(tmp_path):
    bad = "name: bad\nmodel: 1\nmax_turns: many\n"
    found = broken(tmp_path, BAD_AGENT, {"bad.yaml": bad})
    assert [(error.line, error.agent) for error in found.errors] == [(2, "bad"), (3, "bad")]
    assert found.complete


@pytest.mark.parametrize(
    "variable", ["DROVER_CREDENTIAL_KEYS", "DATABASE_URL", "REDIS_URL", "DJANGO_SECRET_KEY"]
)
def test_the_secrets_of_the_installation_cannot_be_referred_to(tmp_path, variable):
    files = {"herdctl.yaml": "agents: [{path: a.yaml}]\n", "a.yaml": "name: a\n"}
    write(tmp_path, files | {"a.yaml": "name: a\nsystem_prompt: ${" + variable + "}\n"})
    found = read(tmp_path, **{variable: "hunter2"})
    assert found.agents == ()
    (error,) = errors_of(found)
    assert f"{variable} belongs to Drover itself" in error
    assert "hunter2" not in error
    assert found.variables == frozenset()


def test_the_names_of_referred_variables_are_known(tmp_path):
    files = {"herdctl.yaml": "agents: [{path: '${DIR}/a.yaml'}]\n"}
    write(tmp_path, files | {"x/a.yaml": "name: a\nmcp_servers: {s: {url: '${URL:-u}'}}\n"})
    found = read(tmp_path, DIR="x")
    assert [agent.name for agent in found.agents] == ["a"]
    assert found.variables == {"DIR", "URL"}


def test_a_missing_agent_file_is_an_error_at_the_reference(tmp_path):
    found = broken(tmp_path, "  - path: gone.yaml\n", {})
    assert errors_of(found) == [
        "herdctl.yaml:3: there is no file gone.yaml; create it, or remove the reference"
    ]
    # Its name is unknown, so no agent may be taken for removed.
    assert not found.complete


def test_a_missing_sub_fleet_is_an_error_at_the_reference(tmp_path):
    (error,) = errors_of(broken(tmp_path, "fleets:\n  - path: sub/herdctl.yaml\n", {}))
    assert error.startswith("herdctl.yaml:4: there is no file sub/herdctl.yaml")


@pytest.mark.parametrize("path", ["../elsewhere.yaml", "/etc/passwd", "sub/../../x.yaml", ".", ""])
def test_a_path_out_of_the_project_is_refused(tmp_path, path):
    found = broken(tmp_path, f"  - path: '{path}'\n", {})
    (error,) = errors_of(found)
    assert error.startswith("herdctl.yaml:3: agents.2.path: ")
    assert "outside of the project directory" in error


def test_a_symlink_out_of_the_project_is_refused(tmp_path):
    outside = write(tmp_path / "outside", {"secret.yaml": "name: secret\n"})
    project = tmp_path / "project"
    write(project, {"herdctl.yaml": FLEET + BAD_AGENT, "good.yaml": GOOD})
    (project / "bad.yaml").symlink_to(outside / "secret.yaml")
    found = read(project)
    assert [agent.name for agent in found.agents] == ["good"]
    assert errors_of(found) == ["bad.yaml: is a symlink out of the project; copy the file instead"]


def test_a_fifo_is_refused_and_does_not_block(tmp_path):
    write(tmp_path, {"herdctl.yaml": FLEET + BAD_AGENT, "good.yaml": GOOD})
    os.mkfifo(tmp_path / "bad.yaml")
    assert errors_of(read(tmp_path)) == ["bad.yaml: is a FIFO; only a regular file is read"]


def test_fleets_that_refer_to_each_other_are_an_error_and_the_rest_is_read(tmp_path):
    sub = "agents: [{path: one.yaml}]\nfleets:\n  - path: ../herdctl.yaml\n"
    write(
        tmp_path,
        {
            "herdctl.yaml": FLEET + "fleets:\n  - path: sub/herdctl.yaml\n",
            "good.yaml": GOOD,
            "sub/herdctl.yaml": sub,
            "sub/one.yaml": "name: one\n",
        },
    )
    found = read(tmp_path)
    assert [agent.name for agent in found.agents] == ["good", "sub-one"]
    assert errors_of(found) == [
        "sub/herdctl.yaml:3: the fleets refer to each other: herdctl.yaml -> sub/herdctl.yaml -> "
        "herdctl.yaml; remove one reference"
    ]


def test_a_fleet_may_be_used_twice_under_two_names(tmp_path):
    fleets = "fleets:\n  - {path: sub/f.yaml, name: a}\n  - {path: sub/f.yaml, name: b}\n"
    sub = {"sub/f.yaml": "agents: [{path: one.yaml}]\n", "sub/one.yaml": "name: one\n"}
    write(tmp_path, {"herdctl.yaml": fleets, **sub})
    assert [agent.name for agent in read(tmp_path).agents] == ["a-one", "b-one"]


def test_two_sub_fleets_with_one_name_are_an_error(tmp_path):
    fleets = "fleets:\n  - {path: sub/f.yaml}\n  - {path: sub/f.yaml}\n"
    write(tmp_path, {"herdctl.yaml": fleets, "sub/f.yaml": "agents: []\n"})
    (error,) = errors_of(read(tmp_path))
    assert error == "herdctl.yaml:3: another sub-fleet here is called 'sub'; set `name`"


def test_fleets_that_double_at_every_level_end_soon(tmp_path):
    """Guard: 18 files that each refer to the next one twice are 262,144 fleets."""
    files = {}
    for level in range(18):
        below = f"f{level + 1}.yaml"
        refs = f"fleets:\n  - {{path: {below}, name: a}}\n  - {{path: {below}, name: b}}\n"
        files["herdctl.yaml" if level == 0 else f"f{level}.yaml"] = refs
    write(tmp_path, files | {"f18.yaml": "agents: []\n"})
    began = time.monotonic()
    found = read(tmp_path)
    assert "at most 1000 files" in errors_of(found)[0]
    assert len(found.errors) == 1
    assert time.monotonic() - began < 20


def test_aliases_that_multiply_are_refused(tmp_path):
    bomb = "a: &a [1, 1, 1, 1, 1, 1, 1, 1, 1, 1]\n"
    for one, other in zip("abcdef", "bcdefg", strict=True):
        bomb += f"{other}: &{other} [{', '.join([f'*{one}'] * 10)}]\n"
    (error,) = errors_of(broken(tmp_path, BAD_AGENT, {"bad.yaml": bomb}))
    assert error.endswith("holds more than 5000 values")


def test_an_alias_means_the_value_of_its_anchor(tmp_path):
    text = "name: a\nallowed_tools: &tools [Read]\ndenied_tools: *tools\n"
    write(tmp_path, {"herdctl.yaml": "agents: [{path: a.yaml}]\n", "a.yaml": text})
    assert list(agent_of(read(tmp_path), "a").command)[-2:] == [
        *("--allowedTools=Read", "--disallowedTools=Read"),
    ]


def test_a_broken_root_file_removes_no_agent(tmp_path):
    write(tmp_path, {"herdctl.yaml": "agents: {}\nagentz: []\n"})
    found = read(tmp_path)
    assert errors_of(found) == [
        "herdctl.yaml:1: agents: must be a list, not a table",
        "herdctl.yaml:2: agentz: unknown field; did you mean 'agents'?",
    ]
    assert not found.complete


def test_fields_that_herdctl_drops_are_reported(tmp_path):
    text = "name: a\nsession: {max_turns: 3, colour: red}\n"
    write(tmp_path, {"herdctl.yaml": "agents: [{path: a.yaml, note: x}]\n", "a.yaml": text})
    found = read(tmp_path)
    assert errors_of(found) == []
    assert [(line.file, line.line, line.field) for line in found.report] == [
        ("herdctl.yaml", 1, "agents.1.note"),
        ("a.yaml", 2, "session.colour"),
    ]


def test_the_old_name_of_the_working_directory_is_known(tmp_path):
    write(tmp_path, {"herdctl.yaml": "agents: [{path: a.yaml}]\n"})
    write(tmp_path, {"a.yaml": "name: a\nworkspace: ./w\n"})
    found = read(tmp_path)
    assert [(line.line, line.field) for line in found.report] == [(2, "working_directory")]


def test_an_unknown_override_is_refused_with_a_suggestion(tmp_path):
    fleet = "  - path: bad.yaml\n    overrides:\n      modle: x\n"
    (error,) = errors_of(broken(tmp_path, fleet, {"bad.yaml": "name: bad\n"}))
    assert error == "herdctl.yaml:5: modle: unknown field; did you mean 'model'?"


def test_overrides_of_a_fleet_that_do_not_fit_are_an_error(tmp_path):
    fleets = "fleets:\n  - path: sub/f.yaml\n    overrides:\n      agents: 3\n"
    found = broken(tmp_path, fleets, {"sub/f.yaml": "agents: []\n"})
    assert errors_of(found) == ["herdctl.yaml:6: agents: must be a list, not 3"]


def test_an_unreadable_env_file_is_an_error_and_agents_without_variables_work(tmp_path):
    found = broken(tmp_path, "", {".env": b"A=\xff\n"})
    (error,) = errors_of(found)
    assert error.startswith(".env:1: is not UTF-8")
