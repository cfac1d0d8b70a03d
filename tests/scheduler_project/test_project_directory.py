"""The project of a directory, and the data directory that it remembers."""

from pathlib import Path

import pytest

from agents_app.errors import ConfigError
from agents_app.formats.herdctl.fleet import CONFIG_NAMES
from agents_app.rules.language import CREW_DIRECTORY
from scheduler_project import project_directory
from scheduler_project.project_directory import Place, find_place, find_project, remember


def tree(root: Path, *files: str) -> Path:
    for name in files:
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("")
    return root


@pytest.mark.parametrize(
    "files",
    [
        [".drover/.gitignore"],
        ["config.toml", "agents/x/y"],
        ["agents/x/SKILL.md"],
        ["herdctl.yaml"],
        [".crew/scheduler.rules"],
    ],
)
def test_the_nearest_project_above_is_found(tmp_path: Path, files: list[str]):
    project = tree(tmp_path / "outer" / "fleet", *files)
    tree(tmp_path / "outer", "agents/other/SKILL.md")
    below = project / "some" / "where"
    below.mkdir(parents=True)
    assert find_project(below) == project


def test_the_config_of_an_agent_makes_no_project(tmp_path: Path):
    project = tree(tmp_path / "fleet", "agents/x/SKILL.md", "agents/x/config.toml")
    tree(project / "agents" / "x", "agents/helper.md")
    assert find_project(project / "agents" / "x") == project


def test_a_directory_without_a_project_above_is_refused(tmp_path: Path):
    with pytest.raises(ConfigError, match="drover init"):
        find_project(tree(tmp_path, "config.toml"))


def test_the_checkout_has_the_examples_and_the_data_of_manage_py():
    checkout = project_directory.CHECKOUT
    assert checkout is not None
    place = find_place({}, checkout / "docs")
    assert place == Place(checkout / "examples", checkout / "var")


def test_another_data_directory_is_remembered_by_its_project(tmp_path: Path):
    project = tree(tmp_path / "fleet", "agents/x/SKILL.md")
    assert find_place({}, project).data == project / ".drover" / "data"
    first = find_place({"DROVER_DATA": "../elsewhere"}, project)
    assert first.is_new
    remember(first)
    again = find_place({}, project / "agents")
    assert again == Place(project, tmp_path / "elsewhere")
    assert find_place({"DROVER_DATA": str(tmp_path / "third")}, project).data == tmp_path / "third"
    assert find_place({"DROVER_PROJECT": str(project)}, tmp_path).data == tmp_path / "elsewhere"


def test_a_data_directory_that_cannot_be_used_is_refused_and_not_remembered(tmp_path: Path):
    project = tree(tmp_path / "fleet", "agents/x/SKILL.md")
    (tmp_path / "file").touch()
    place = find_place({"DROVER_DATA": str(tmp_path / "file" / "data")}, project)
    with pytest.raises(ConfigError, match="file/data cannot be used: Not a directory"):
        remember(place)
    assert find_place({}, project).data == project / ".drover" / "data"


def test_the_names_of_other_formats_are_those_that_are_read():
    assert set(project_directory.OTHER_FORMATS) == {*CONFIG_NAMES, CREW_DIRECTORY}
