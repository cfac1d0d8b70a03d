"""Any file of a project of herdctl may be broken in any way: its error names it, the rest works."""

import time

import pytest

from agents_app.formats import ProjectDiscovery
from tests.agents_app.formats.test_herdctl_bad_input import BAD_AGENT, FLEET, GOOD, broken, read
from tests.agents_app.formats.written import errors_of, write

BIG = b"# " + b"x" * 10_000_000 + b"\n"
DEEP = b"a: " + b"[" * 20_000 + b"]" * 20_000 + b"\n"
DEEP_TABLES = b"{a: " * 10_000 + b"1" + b"}" * 10_000 + b"\n"
FILES = {
    "herdctl.yaml": FLEET + "  - path: team/a.yaml\nfleets:\n  - path: sub/herdctl.yaml\n",
    "good.yaml": GOOD,
    "team/a.yaml": "name: a\n",
    "sub/herdctl.yaml": "agents: [{path: b.yaml}]\n",
    "sub/b.yaml": "name: b\n",
}
AGENTS = {"good", "a", "sub-b"}
# What is left when a file cannot be read.
LEFT = {
    "herdctl.yaml": set[str](),
    "team/a.yaml": {"good", "sub-b"},
    "sub/herdctl.yaml": {"good", "a"},
    "sub/b.yaml": {"good", "a"},
}


def names_of(found: ProjectDiscovery) -> set[str]:
    return {agent.name for agent in found.agents}


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        (b"\x89PNG\r\n\x1a\n\x00\x00", "is not UTF-8: byte 0x89 at offset 0"),
        (b"name: a\x00b\n", "contains a NUL character"),
        (BIG, "has 10000003 bytes; at most 65536 (64 KiB) are read"),
        (DEEP, ""),
        (DEEP_TABLES, ""),
        (b"a: 1\n---\nb: 2\n", "a second YAML document starts here"),
        (b"name: !!python/object:os.system x\n", "the tag !!python/object:os.system is not allow"),
        (b"a: &a [*a]\n", "there is no value &a above this line"),
        (b"a: {<<: {b: 1}}\nb:\n\t- c\n", "a tab cannot indent YAML"),
        (b"- 1\n- 2\n", "must be a table of fields"),
        (b"just text\n", "must be a table of fields"),
    ],
)
@pytest.mark.parametrize("name", LEFT)
def test_a_broken_file_is_named_and_the_rest_of_the_project_works(tmp_path, name, content, reason):
    write(tmp_path, {**FILES, name: content})
    began = time.monotonic()
    found = read(tmp_path)
    assert time.monotonic() - began < 5
    assert names_of(found) == LEFT[name]
    assert {error.path for error in found.errors} == {name}
    assert reason in str(found.errors[0])
    assert found.errors[0].line or "bytes" in reason
    # No agent is removed because a file cannot be read.
    assert not found.complete


def test_an_env_file_of_ten_megabytes_is_an_error_and_the_agents_work(tmp_path):
    write(tmp_path, {**FILES, ".env": BIG})
    found = read(tmp_path)
    assert names_of(found) == AGENTS
    assert errors_of(found)[0].startswith(".env: has 10000003 bytes")


@pytest.mark.parametrize("name", [*LEFT, ".env"])
@pytest.mark.parametrize("target", ["outside", "dangling", "loop"])
def test_symlinks_that_lead_nowhere_or_out_of_the_project_are_errors(tmp_path, name, target):
    project = write(tmp_path / "project", FILES)
    outside = write(tmp_path / "outside", {"x.yaml": "name: secret\nsystem_prompt: hunter2\n"})
    path = project / name
    path.unlink(missing_ok=True)
    to = {"outside": outside / "x.yaml", "dangling": outside / "y.yaml", "loop": path}[target]
    path.symlink_to(to)
    found = read(project)
    assert names_of(found) == LEFT.get(name, AGENTS)
    assert [error.path for error in found.errors] == [name]
    assert "symlink" in str(found.errors[0])
    assert "hunter2" not in repr(found)


def test_a_directory_that_is_a_symlink_out_of_the_project_is_an_error(tmp_path):
    project = write(
        tmp_path / "project", {"herdctl.yaml": FILES["herdctl.yaml"]} | {"good.yaml": GOOD}
    )
    outside = write(tmp_path / "outside", {"a.yaml": "name: a\n", "herdctl.yaml": "agents: []\n"})
    (project / "team").symlink_to(outside)
    (project / "sub").symlink_to(outside)
    found = read(project)
    assert names_of(found) == {"good"}
    assert {error.path for error in found.errors} == {"team/a.yaml", "sub/herdctl.yaml"}


def test_a_symlink_to_a_directory_above_is_a_cycle(tmp_path):
    """Otherwise the same agents would exist twenty times, under longer and longer names."""
    write(tmp_path, {"herdctl.yaml": FLEET + "fleets:\n  - path: up/herdctl.yaml\n"})
    write(tmp_path, {"good.yaml": GOOD})
    (tmp_path / "up").symlink_to(".")
    found = read(tmp_path)
    assert names_of(found) == {"good"}
    assert "the fleets refer to each other: herdctl.yaml -> up/herdctl.yaml" in errors_of(found)[0]


def test_a_fleet_that_refers_to_itself_is_a_cycle(tmp_path):
    found = broken(tmp_path, "fleets:\n  - path: ./herdctl.yaml\n", {})
    (error,) = errors_of(found)
    assert error.startswith("herdctl.yaml:4: the fleets refer to each other")


def test_fleets_may_be_nested_twenty_levels_deep(tmp_path):
    files = {"f19/herdctl.yaml": "agents: [{path: a.yaml}]\n", "f19/a.yaml": "name: a\n"}
    for level in range(1, 19):
        files[f"f{level}/herdctl.yaml"] = f"fleets: [{{path: ../f{level + 1}/herdctl.yaml}}]\n"
    files["herdctl.yaml"] = "fleets: [{path: f1/herdctl.yaml, name: top}]\n"
    found = read(write(tmp_path, files))
    # The name of such an agent is too long: that is its only error.
    (error,) = errors_of(found)
    assert error.startswith("f19/a.yaml:1: name: ")
    write(tmp_path, {"f19/herdctl.yaml": "fleets: [{path: ../f20/herdctl.yaml}]\n"})
    write(tmp_path, {"f20/herdctl.yaml": "agents: []\n"})
    (error,) = errors_of(read(tmp_path))
    assert error.startswith("f19/herdctl.yaml:1: fleets are nested deeper than 20 levels")


@pytest.mark.parametrize(
    ("fleet", "error"),
    [
        ("agents: 3\n", "herdctl.yaml:1: agents: must be a list, not 3"),
        ("agents: [3]\n", "herdctl.yaml:1: agents.1: must be a table, not 3"),
        ("agents: [null]\n", "herdctl.yaml:1: agents.1: must be a table, not nothing"),
        ("agents: [{path: [a]}]\n", "herdctl.yaml:1: agents.1.path: must be text, not a list"),
        ("agents:\n  - overrides: {}\n", "herdctl.yaml:2: agents.1.path: is missing"),
        ("fleets: {a: b}\n", "herdctl.yaml:1: fleets: must be a list, not a table"),
        ("fleets:\n  - path: 3\n", "herdctl.yaml:2: fleets.1.path: must be text, not 3"),
        ("fleets: [{path: x, name: a.b}]\n", "herdctl.yaml:1: fleets.1.name: must be letters"),
        ("defaults: []\n", "herdctl.yaml:1: defaults: must be a table, not a list"),
        ("defaults: {model: 3}\n", "herdctl.yaml:1: defaults.model: must be text, not 3"),
        ("fleet: x\n", "herdctl.yaml:1: fleet: must be a table, not 'x'"),
        ("version: one\n", "herdctl.yaml:1: version: must be a whole number, not 'one'"),
        ("? [a]\n: 1\n", "herdctl.yaml:1: a key must be plain text"),
        ("a: 1\na: 2\n", "herdctl.yaml:2: duplicate key 'a'; first used on line 1"),
    ],
)
def test_wrong_types_in_a_fleet_file_are_errors_with_their_line(tmp_path, fleet, error):
    write(tmp_path, {"herdctl.yaml": fleet})
    assert errors_of(read(tmp_path))[0].startswith(error)


@pytest.mark.parametrize(
    ("fields", "error"),
    [
        ("hooks: 3\n", "bad.yaml:2: hooks: must be a table, not 3"),
        ("hooks: {after_run: {}}\n", "bad.yaml:2: hooks.after_run: must be a list, not a table"),
        ("hooks:\n  after_run:\n    - 3\n", "bad.yaml:4: hooks.after_run.1: must be a table"),
        ("hooks: {on_error: [{type: mail}]}\n", "bad.yaml:2: hooks.on_error.1.type: must be shell"),
        (
            "hooks:\n  after_run:\n    - type: shell\n      command: x\n      timeout: -1\n",
            "bad.yaml:6: hooks.after_run.1.timeout: must be more than 0, not -1",
        ),
        ("work_source: []\n", "bad.yaml:2: work_source: must be a work source with"),
        ("work_source: {type: gitlab}\n", "bad.yaml:2: work_source: must be a work source"),
        (
            "schedules:\n  x:\n    type: interval\n    interval: 5m\n    work_source: 3\n",
            "bad.yaml:6: schedules.x.work_source: must be a work source",
        ),
        ("max_turns: .inf\n", "bad.yaml:2: inf is not a finite number"),
        ("identity: Rita\n", "bad.yaml:2: identity: must be a table, not 'Rita'"),
    ],
)
def test_wrong_types_in_an_agent_file_are_errors_with_their_line(tmp_path, fields, error):
    (found,) = errors_of(broken(tmp_path, BAD_AGENT, {"bad.yaml": f"name: bad\n{fields}"}))
    assert found.startswith(error)


@pytest.mark.parametrize("name", ["[1]", "null", "3", "a b", "''"])
def test_an_override_of_the_name_that_is_no_name_makes_no_agent(tmp_path, name):
    fleet = f"  - path: bad.yaml\n    overrides:\n      name: {name}\n"
    found = broken(tmp_path, fleet, {"bad.yaml": "name: bad\n"})
    (error,) = errors_of(found)
    assert error.startswith("herdctl.yaml:5: name: ")
    assert (found.broken, found.complete) == ({}, False)
