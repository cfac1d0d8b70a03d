import os
import shutil
import tempfile
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

import pytest

from agents_app.skills.discover import Discovery, discover_project
from agents_app.skills.specs import ProjectSpec
from tests.agents_app.skills.conftest import ProjectDirectory
from tests.parts.missing import missing
from tests.parts.users_part import as_user

T = TypeVar("T")


def names(discovery) -> list[str]:
    return [agent.name for agent in discovery.agents]


def reasons(discovery) -> list[str]:
    return [str(error) for error in discovery.errors]


def test_agents_are_found_below_agents_and_directly_below_the_project(on_disk):
    on_disk.add_agent("b")
    on_disk.add_agent("a", under=".")
    on_disk.write("config.toml", "scale = 3\n")
    found = discover_project(on_disk.root)
    assert names(found) == ["a", "b"]
    assert (found.errors, found.project.scale, found.complete) == ((), 3, True)
    assert found.agents[0].source_path == on_disk.root / "a" / "SKILL.md"


def test_an_agents_own_config_is_read_beside_its_skill(on_disk):
    on_disk.add_agent("a", "scale: 1")
    on_disk.write("agents/a/config.toml", "scale = 7\ncommand = 'true'\n")
    assert discover_project(on_disk.root).agents[0].scale == 7


def test_an_agent_without_a_command_anywhere_is_refused_with_what_to_do(on_disk):
    on_disk.add_agent("a", "scale: 1")
    (error,) = discover_project(on_disk.root).errors
    assert str(error).startswith("agents/a/SKILL.md: no command: set `command`")


def test_hidden_directories_and_node_modules_are_skipped(on_disk):
    for name in (".git", "node_modules"):
        on_disk.add_agent(name)
        on_disk.add_agent(name, under=".")
    on_disk.write("agents/SKILL.md", "not an agent")
    on_disk.write("shared/notes.txt", "no SKILL.md, no agent")
    on_disk.write("agents/a/b/SKILL.md", "too deep")
    assert discover_project(on_disk.root).agents == ()
    assert discover_project(on_disk.root).errors == ()


def test_a_project_without_any_file_is_empty_and_not_wrong(on_disk):
    found = discover_project(on_disk.root)
    assert (found.project, found.agents, found.errors) == (ProjectSpec(), (), ())


def test_a_missing_project_is_an_error_and_removes_no_agent(tmp_path):
    found = discover_project(tmp_path / "nowhere")
    assert "the project directory does not exist" in reasons(found)[0]
    assert not found.complete


def test_a_broken_agent_leaves_the_others_alone(on_disk):
    on_disk.add_agent("good")
    on_disk.add_agent("bad", "scale: x\ntimeout: y")
    found = discover_project(on_disk.root)
    assert names(found) == ["good"]
    assert [(e.path, e.line, e.agent) for e in found.errors] == [
        ("agents/bad/SKILL.md", 2, "bad"),
        ("agents/bad/SKILL.md", 3, "bad"),
    ]
    assert found.broken == {"bad": "\n".join(reasons(found))}
    assert found.complete


@pytest.mark.parametrize("name", ["Bad", "a_b", "-Q", "default", "é", "x" * 200])
def test_a_directory_with_an_impossible_name_is_an_error_for_that_one(on_disk, name):
    on_disk.add_agent("good")
    on_disk.add_agent(name)
    found = discover_project(on_disk.root)
    assert names(found) == ["good"]
    assert len(found.errors) == 1
    assert (found.errors[0].agent, found.complete) == (None, True)


def test_a_name_that_is_not_text_is_shown_readably(on_disk):
    directory = os.fsencode(on_disk.root) + b"/agents/\xff\x1b[2J"
    os.makedirs(directory)
    Path(os.fsdecode(directory), "SKILL.md").write_text("x")
    (text,) = reasons(discover_project(on_disk.root))
    assert text.isprintable()
    text.encode()


def test_the_same_name_twice_is_an_error_for_that_one(on_disk):
    on_disk.add_agent("good")
    on_disk.add_agent("twin")
    on_disk.add_agent("twin", under=".")
    found = discover_project(on_disk.root)
    assert names(found) == ["good"]
    assert reasons(found) == [
        "agents/twin/SKILL.md: agent 'twin' is also defined in twin/SKILL.md; remove one"
    ]


def test_a_broken_project_config_leaves_the_defaults_or_the_last_good_one(on_disk):
    on_disk.add_agent("a")
    on_disk.write("config.toml", "max_reruns = 1\nscale = \n")
    found = discover_project(on_disk.root)
    assert reasons(found) == ["config.toml:2:9: is not TOML: Invalid value"]
    assert (found.project, names(found), found.complete) == (ProjectSpec(), ["a"], True)
    last_good = ProjectSpec(scale=4, max_reruns=6)
    found = discover_project(on_disk.root, last_good)
    assert (found.project, found.agents[0].max_reruns) == (last_good, 6)


def test_a_removed_project_config_means_the_defaults_and_not_the_last_good_one(on_disk):
    assert discover_project(on_disk.root, ProjectSpec(scale=4)).project == ProjectSpec()


def test_a_project_is_found_through_a_symlink_to_it(on_disk, tmp_path):
    on_disk.add_agent("a")
    link = tmp_path / "link"
    link.symlink_to(on_disk.root)
    assert names(discover_project(link)) == ["a"]


@pytest.mark.parametrize("linked", ["agents/a/SKILL.md", "agents/a/config.toml", "agents/a"])
@pytest.mark.fault("F70")
def test_a_symlink_out_of_the_project_is_refused(on_disk, tmp_path, linked):
    outside = tmp_path / "outside"
    ProjectDirectory(outside).write("SKILL.md", "secret: text")
    ProjectDirectory(outside).write("config.toml", "scale = 5")
    on_disk.add_agent("a")
    on_disk.add_agent("good")
    target = on_disk.root / linked
    source = outside if target.is_dir() else outside / target.name
    shutil.rmtree(target) if target.is_dir() else target.unlink(missing_ok=True)
    target.symlink_to(source)
    found = discover_project(on_disk.root)
    assert names(found) == ["good"]
    assert "is a symlink out of the project; copy the file instead" in reasons(found)[0]
    assert found.broken.keys() == {"a"}


def test_a_project_config_that_is_a_symlink_out_of_the_project_is_refused(on_disk, tmp_path):
    (tmp_path / "elsewhere.toml").write_text("scale = 5")
    (on_disk.root / "config.toml").symlink_to(tmp_path / "elsewhere.toml")
    found = discover_project(on_disk.root)
    assert found.project.scale is None
    assert "is a symlink out of the project" in reasons(found)[0]


def test_a_symlink_within_the_project_is_followed(on_disk):
    on_disk.write("shared/SKILL-base.md", "---\nscale: 6\ncommand: date\n---\n")
    (on_disk.root / "agents" / "a").mkdir(parents=True)
    (on_disk.root / "agents" / "a" / "SKILL.md").symlink_to("../../shared/SKILL-base.md")
    (on_disk.root / "b").symlink_to("agents/a")
    found = discover_project(on_disk.root)
    assert [(agent.name, agent.scale) for agent in found.agents] == [("a", 6), ("b", 6)]


def test_a_symlink_loop_and_a_dangling_symlink_are_refused(on_disk):
    for name in ("circle", "nothing"):
        (on_disk.root / "agents" / name).mkdir(parents=True)
        (on_disk.root / "agents" / name / "SKILL.md").symlink_to(
            "SKILL.md" if name == "circle" else "missing.md"
        )
    found = discover_project(on_disk.root)
    assert found.broken.keys() == {"circle", "nothing"}
    assert "is a dangling symlink" in found.broken["nothing"]


@pytest.mark.fault("F70")
def test_a_hard_link_is_refused(on_disk, tmp_path):
    (tmp_path / "private").write_text("root's own")
    (on_disk.root / "agents" / "a").mkdir(parents=True)
    os.link(tmp_path / "private", on_disk.root / "agents" / "a" / "SKILL.md")
    assert "has 2 hard links" in discover_project(on_disk.root).broken["a"]


@pytest.mark.fault("F70")
def test_a_fifo_is_refused_and_does_not_hang(on_disk):
    (on_disk.root / "agents" / "a").mkdir(parents=True)
    os.mkfifo(on_disk.root / "agents" / "a" / "SKILL.md")
    os.mkfifo(on_disk.root / "config.toml")
    results: list[Discovery] = []
    looking = threading.Thread(
        target=lambda: results.append(discover_project(on_disk.root)), daemon=True
    )
    looking.start()
    looking.join(5)
    assert results, "discover hangs on a FIFO"
    assert reasons(results[0]) == [
        "config.toml: is a FIFO; only a regular file is read",
        "agents/a/SKILL.md: is a FIFO; only a regular file is read",
    ]


@pytest.mark.fault("F70")
def test_a_device_is_refused(on_disk):
    (on_disk.root / "agents" / "a").mkdir(parents=True)
    try:
        os.mknod(on_disk.root / "agents" / "a" / "SKILL.md", 0o20666, os.makedev(1, 5))
    except PermissionError:
        missing("leave to make a device", "run the tests as root")
    found = discover_project(on_disk.root)
    # A mount with `nodev` refuses it before we can.
    assert "is a device" in found.broken["a"] or "Permission denied" in found.broken["a"]


def test_a_directory_in_the_place_of_the_file_is_refused(on_disk):
    (on_disk.root / "agents" / "a" / "SKILL.md").mkdir(parents=True)
    assert (
        "is a directory; only a regular file is read" in discover_project(on_disk.root).broken["a"]
    )


@pytest.mark.fault("F69")
def test_a_file_of_10_mb_is_refused_without_being_read(on_disk):
    on_disk.write("agents/a/SKILL.md", b"x" * 10_000_000)
    on_disk.write("agents/b/SKILL.md", "---\nscale: [\n---\n")
    on_disk.add_agent("good")
    started = time.process_time()
    found = discover_project(on_disk.root)
    assert time.process_time() - started < 0.5
    assert names(found) == ["good"]
    assert found.broken["b"].startswith("agents/b/SKILL.md:")
    assert "has 10000000 bytes; at most 65536" in found.broken["a"]


@pytest.mark.fault("F69")
def test_a_file_that_is_not_utf_8_is_refused_with_the_offset(on_disk):
    on_disk.write("agents/a/SKILL.md", b"---\ndescription: caf\xe9\n---\n")
    assert discover_project(on_disk.root).broken["a"] == (
        "agents/a/SKILL.md:2: is not UTF-8: byte 0xe9 at offset 20; save it as UTF-8"
    )


def test_a_byte_order_mark_and_windows_line_ends_are_accepted(on_disk):
    on_disk.write(
        "agents/a/SKILL.md", b"\xef\xbb\xbf---\r\nscale: 3\r\ncommand: date\r\n---\r\nWork.\r\n"
    )
    assert discover_project(on_disk.root).agents[0].scale == 3


def test_no_file_stays_open(on_disk):
    on_disk.add_agent("a")
    (on_disk.root / "agents" / "b" / "SKILL.md").mkdir(parents=True)
    (on_disk.root / "agents" / "c").mkdir()
    os.mkfifo(on_disk.root / "agents" / "c" / "SKILL.md")
    discover_project(on_disk.root)
    before = len(os.listdir("/proc/self/fd"))
    for _ in range(5):
        discover_project(on_disk.root)
    assert len(os.listdir("/proc/self/fd")) == before


def by_an_ordinary_user(act: Callable[[], T]) -> T:
    """Root may read everything. In a child process: a change of the user of this process would be
    one of its threads, too, and those of sandboxes may not change it."""
    return as_user("nobody", act) if os.geteuid() == 0 else act()


@pytest.fixture
def public_project():
    """Under a directory that an ordinary user may enter, unlike pytest's own."""
    root = Path(tempfile.mkdtemp(prefix="drover-test-"))
    root.chmod(0o755)
    yield ProjectDirectory(root.resolve())
    for directory in root.rglob("*"):
        if directory.is_dir():
            directory.chmod(0o755)
    shutil.rmtree(root)


def test_a_directory_without_permission_is_an_error_for_that_one(public_project):
    public_project.add_agent("good")
    public_project.add_agent("closed")
    (public_project.root / "agents" / "closed").chmod(0)

    def discover() -> tuple[list[str], dict[str, str], bool]:
        found = discover_project(public_project.root)
        return names(found), dict(found.broken), found.complete

    broken = {"closed": "agents/closed/SKILL.md: cannot be opened: Permission denied"}
    assert by_an_ordinary_user(discover) == (["good"], broken, True)


def test_an_agents_directory_that_cannot_be_listed_removes_no_agent(public_project):
    public_project.add_agent("a")
    public_project.add_agent("b", under=".")
    (public_project.root / "agents").chmod(0)

    def discover() -> tuple[list[str], list[str], bool]:
        found = discover_project(public_project.root)
        return names(found), reasons(found), found.complete

    errors = ["agents: cannot be listed: Permission denied"]
    assert by_an_ordinary_user(discover) == (["b"], errors, False)
