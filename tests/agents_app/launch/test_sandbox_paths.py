"""What the sandbox of a run contains: toolchains without the home, and never Drover's own files."""

import os
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from agents_app.conf import CONF
from agents_app.launch import sandbox
from agents_app.launch.sandbox import SandboxChoice, sandbox_choice, sandbox_of
from agents_app.launch.toolchains import tool_paths, tool_variables
from agents_app.models import Tenant
from agents_app.runners import Mount
from agents_app.runners.base import is_below

SYSTEM = ("/usr", "/bin")


def tool(path: Path) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("#!/bin/sh\n")
    path.chmod(0o755)
    return path


def link(path: Path, target: Path) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.symlink_to(target)
    return path


@pytest.fixture
def home(tmp_path: Path) -> Path:
    (tmp_path / "home" / ".ssh").mkdir(parents=True)
    (tmp_path / "home" / ".ssh" / "id_ed25519").write_text("secret")
    return tmp_path / "home"


def found(home: Path, *directories: Path) -> set[str]:
    path = os.pathsep.join(map(str, directories))
    paths = tool_paths(path, home, SYSTEM)
    assert not is_below(str(home / ".ssh"), paths)
    return {str(Path(each).relative_to(home)) for each in paths}


@pytest.mark.parametrize(
    ("program", "prefix"),
    [
        (".pyenv/shims/python", ".pyenv"),
        (".nvm/versions/node/v20.1.0/bin/node", ".nvm/versions/node/v20.1.0"),
        ("miniconda3/bin/python", "miniconda3"),
        ("miniconda3/condabin/conda", "miniconda3"),
        (".volta/bin/node", ".volta"),
        (".npm-global/bin/tool", ".npm-global"),
    ],
)
def test_the_prefix_of_a_toolchain_is_readable(home, program, prefix):
    assert prefix in found(home, tool(home / program).parent)


def test_programs_of_the_user_do_not_open_what_is_beside_them(home):
    tool(home / ".local" / "bin" / "tool")
    tool(home / "bin" / "mine")
    tool(home / ".cargo" / "bin" / "cargo")
    (home / ".cargo" / "credentials.toml").write_text("token")
    (home / ".rustup").mkdir()
    (home / ".local" / "lib").mkdir()
    directories = (home / ".local" / "bin", home / "bin", home / ".cargo" / "bin")
    expected = {".local/bin", ".local/lib", "bin", ".cargo/bin", ".rustup"}
    assert found(home, *directories) == expected


def test_links_of_programs_lead_to_their_own_toolchains(home):
    python = tool(home / ".local/share/uv/python/cpython-3.12/bin/python3.12")
    link(home / ".local/share/uv/tools/ruff/bin/python", python)
    ruff = tool(home / ".local/share/uv/tools/ruff/bin/ruff")
    link(home / ".local/bin/ruff", ruff)
    claude = tool(home / ".local/share/claude/versions/2.1.0")
    link(home / ".local/bin/claude", claude)
    paths = found(home, home / ".local" / "bin")
    assert {
        ".local/share/uv/tools/ruff",
        ".local/share/uv/python/cpython-3.12",
        ".local/share/claude/versions/2.1.0",
    } <= paths
    assert ".local/share/claude/versions" not in paths


def test_a_virtual_environment_brings_the_interpreter_it_is_made_of(home):
    python = tool(home / ".pyenv/versions/3.11.7/bin/python3.11")
    link(home / "work/.venv/bin/python", python)
    paths = found(home, home / "work" / ".venv" / "bin")
    assert {"work/.venv", ".pyenv/versions/3.11.7"} <= paths
    assert "work" not in paths


@pytest.mark.parametrize("mode", [0o600, 0o755])
def test_a_planted_link_to_a_private_file_opens_nothing(home, mode):
    """The sandbox does not keep a run from setting the mode of a file."""
    tool(home / ".local" / "bin" / "tool")
    (home / ".ssh" / "id_ed25519").chmod(mode)
    link(home / ".local" / "bin" / "planted", home / ".ssh" / "id_ed25519")
    assert found(home, home / ".local" / "bin") == {".local/bin"}


def test_directories_of_the_system_and_missing_ones_add_nothing(home):
    assert found(home, Path("/usr/bin"), Path("/bin"), home / "gone" / "bin") == set()
    assert tool_paths("relative/bin::", home, SYSTEM) == ()


def test_rust_finds_its_toolchains_although_home_is_another(home):
    (home / ".rustup").mkdir()
    assert tool_variables(f"/bin:{home}/.cargo/bin", home) == {"RUSTUP_HOME": f"{home}/.rustup"}
    assert tool_variables("/bin", home) == {}


# --- the whole sandbox ----------------------------------------------------------------------


def made(**choice: object):
    mounts = (Mount(CONF.data / "runs" / "7", writable=True), Mount(Path("/srv/agent")))
    chosen = SandboxChoice(**choice)  # type: ignore[arg-type]
    return sandbox_of(chosen, mounts, os.environ["PATH"], sys.executable)


def test_the_data_directory_and_the_home_are_in_no_rule():
    """Guard: no rule is above them; rules below the data directory are only those of the run."""
    box = made(read=("/",), write=("/",))
    data = str(CONF.data)
    assert box.own_write == (f"{data}/runs/7",)
    assert not is_below(data, (*box.all_read, *box.all_write))
    assert not [path for path in (*box.all_read, *box.write) if is_below(path, (data,))]
    assert not is_below(str(Path.home()), made().all_read)
    for device in ("/dev/sda", "/dev/pts/0", "/dev/ptmx"):
        assert not is_below(device, (*made().all_read, *made().all_write))
    assert "/dev/pts" in made(write=("/dev/pts",)).write


def test_no_rule_leads_into_the_data_directory(tmp_path):
    planted = link(tmp_path / "planted", CONF.data / "bin" / "tool")
    tool(CONF.data / "bin" / "tool")
    tool(keys := CONF.data / "keys-of-test")
    try:
        box = made(read=(str(keys), str(planted)), write=(str(keys), f"{CONF.data}/runs"))
        by_name = sandbox_of(SandboxChoice(), (), str(tmp_path), str(CONF.data / "bin" / "tool"))
    finally:
        keys.unlink()
        (CONF.data / "bin" / "tool").unlink()
        (CONF.data / "bin").rmdir()
    assert by_name is not None
    for paths in (box.read, box.write, by_name.all_read):
        assert not [path for path in paths if is_below(os.path.realpath(path), (str(CONF.data),))]


def test_a_database_outside_the_data_directory_is_hidden(tmp_path, monkeypatch):
    directory = tmp_path / "opt"
    directory.mkdir()
    for name in ("db.sqlite3", "db.sqlite3-wal", "db.sqlite3-shm", "db.sqlite3-journal", "tool"):
        (directory / name).write_text("x")
    conf = replace(CONF, database_url=f"sqlite:///{directory}/db.sqlite3")
    monkeypatch.setattr(sandbox, "CONF", conf)
    sandbox.hidden_paths.cache_clear()
    try:
        box = made(read=(str(directory),), write=(f"{directory}/db.sqlite3",))
    finally:
        sandbox.hidden_paths.cache_clear()
    inside = {path for path in (*box.read, *box.write) if is_below(path, (str(directory),))}
    assert inside == {f"{directory}/tool"}
    assert f"{directory}/db.sqlite3-wal" in box.hidden


@pytest.mark.parametrize("home", ["/bin", "/usr/sbin", "/usr", "/"])
def test_a_home_that_is_a_system_directory_hides_no_programs(home, monkeypatch):
    monkeypatch.setattr(sandbox, "user_home", lambda: Path(home).resolve())
    read = tuple(map(os.path.realpath, made(read=(f"/no/{home}",)).read))
    for program in ("/bin/sh", "/usr/sbin/nologin"):
        assert is_below(os.path.realpath(program), read)


def test_a_directory_that_is_split_may_have_loops_and_closed_directories(tmp_path, monkeypatch):
    data = tmp_path / "opt" / "drover" / "data"
    data.mkdir(parents=True)
    (tmp_path / "opt" / "drover" / "loop").symlink_to(tmp_path / "opt")
    (tmp_path / "opt" / "tool").mkdir()
    assert sandbox._without([str(tmp_path / "opt")], (str(data),)) == [f"{tmp_path}/opt/tool"]

    def refuse(path: str) -> None:
        raise PermissionError(13, "Permission denied", path)

    monkeypatch.setattr(os, "scandir", refuse)
    assert sandbox._without([str(tmp_path / "opt")], (str(data),)) == []


def test_a_system_directory_with_the_data_inside_is_split(tmp_path, monkeypatch):
    """As /opt/drover/data: a rule for /opt would open it."""
    data = tmp_path / "opt" / "drover" / "data"
    data.mkdir(parents=True)
    (tmp_path / "opt" / "tool").mkdir()
    (tmp_path / "opt" / "drover" / "agents").mkdir()
    (tmp_path / "opt" / "way").symlink_to(data)
    paths = sandbox._without([str(tmp_path / "opt")], (str(data),))
    assert paths == [f"{tmp_path}/opt/drover/agents", f"{tmp_path}/opt/tool"]


def test_python_of_drover_can_be_executed():
    box = made()
    assert is_below(os.path.realpath(sys.executable), tuple(map(os.path.realpath, box.read)))


def test_an_agent_without_a_directory_does_not_get_that_of_the_worker():
    box = sandbox_of(SandboxChoice(), (Mount(Path("")),), "/bin", "true")
    assert box is not None
    assert box.own_read == ()


def test_off_is_no_sandbox_and_required_is_passed_on():
    assert made(mode="off") is None
    assert made(mode="required").required
    assert not made().required


def test_rows_of_earlier_versions_have_the_default():
    assert sandbox_choice({}) == SandboxChoice("auto", (), ())
    stored = {"mode": "off", "read": ["/a"], "write": ["/b"]}
    assert sandbox_choice(stored) == SandboxChoice("off", ("/a",), ("/b",))


def test_a_path_below_another_needs_no_rule_of_its_own(tmp_path):
    inner = tmp_path / "a" / "b"
    inner.mkdir(parents=True)
    read = made(read=(str(inner), str(tmp_path / "a"), "/usr/bin")).read
    assert [path for path in read if path.startswith((str(tmp_path), "/usr"))] == [
        "/usr",
        str(tmp_path / "a"),
    ]


def test_a_home_in_a_declared_path_is_that_of_the_user(monkeypatch, tmp_path):
    (tmp_path / "share").mkdir()
    monkeypatch.setenv("HOME", str(tmp_path))
    sandbox.user_home.cache_clear()
    try:
        assert str(tmp_path / "share") in made(read=("~/share",)).read
    finally:
        sandbox.user_home.cache_clear()


@pytest.mark.django_db
def test_the_projects_of_other_tenants_are_in_no_rule(tmp_path):
    """Whatever an agent declares: `sandbox.read` is a line in a file of its own tenant."""
    for name in ("acme", "other"):
        (tmp_path / name).mkdir()
        Tenant.objects.create(name=name, project=str(tmp_path / name))
    (tmp_path / "free").mkdir()
    choice = SandboxChoice(read=(str(tmp_path),), write=(str(tmp_path / "other"),))
    sandbox._other_projects.cache_clear()
    try:
        of_acme = sandbox_of(choice, (), "/bin", "true", project=str(tmp_path / "acme"))
        of_default = sandbox_of(choice, (), "/bin", "true", project=str(CONF.project))
    finally:
        sandbox._other_projects.cache_clear()

    def below(box) -> set[str]:
        paths = (*box.read, *box.write)
        return {path for path in paths if is_below(path, (str(tmp_path),))}

    assert below(of_acme) == {str(tmp_path / "acme"), str(tmp_path / "free")}
    assert below(of_default) == {str(tmp_path / "free")}
    assert str(CONF.project) in of_acme.hidden
