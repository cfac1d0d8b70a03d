"""`init` and `agent add`: questions on a terminal, flags, and one message for bad input."""

from pathlib import Path

import pytest

from tests.agents_app.management.calling import call
from tests.agents_app.management.on_terminal import on_terminal
from tests.parts.stack_part import PrivateStack


def test_init_asks_on_a_terminal_and_agent_add_extends_the_project(tmp_path: Path) -> None:
    stack = PrivateStack(tmp_path)
    stack.project.rmdir()
    with on_terminal(stack, "init", str(stack.project)) as terminal:
        for question, answer in (
            ("Harness (claude-code, codex, shell) [shell]: ", "robot"),
            ("'robot' is not one of claude-code, codex, shell", "codex"),
            ("What should the first agent do?", ""),
            ("Name of the agent [nightly-report]: ", "reporter"),
            ("Schedule [every day at 02:30]: ", "0 4 * * *"),
        ):
            terminal.wait_for(question)
            terminal.type(f"{answer}\n")
        assert terminal.wait() == 0, terminal.text
    assert "written  agents/reporter/SKILL.md" in terminal.text
    # A credential is stored in the database, which the first start creates.
    start = f"DROVER_PROJECT={stack.project} manage.py up -d"
    assert [line.strip() for line in terminal.text.partition("next:")[2].splitlines()][1:3] == [
        start,
        "manage.py credential set openai_key",
    ]
    skill = (stack.project / "agents/reporter/SKILL.md").read_text()
    assert 'schedule: "0 4 * * *"' in skill
    assert "harness: codex" in skill
    added = stack.manage("agent", "add", "reviewer", "--template", "pr-reviewer")
    assert added.returncode == 0, added.stderr
    assert f"written  {stack.project}/config.toml" in added.stdout
    again = stack.manage("agent", "add", "reviewer")
    assert again.returncode == 1
    assert again.stderr.startswith("drover: the agent reviewer exists: ")
    assert len(again.stderr.splitlines()) == 1


def test_with_yes_nothing_is_asked(tmp_path: Path) -> None:
    said = call("init", str(tmp_path / "fleet"), "--yes", "--json")
    assert said.code == 0, said.err
    assert said.json["written"] == [
        *("config.toml", "scheduler.rules", ".gitignore", "agents/hello/SKILL.md")
    ]


def test_the_file_gitignore_of_a_repository_stays(tmp_path: Path) -> None:
    (tmp_path / ".gitignore").write_text("mine\n")
    (tmp_path / "README.md").touch()
    said = call("init", str(tmp_path), "--yes", "--existing")
    assert "kept     .gitignore" in said.out
    assert (tmp_path / ".gitignore").read_text() == "mine\n"


@pytest.mark.parametrize(
    ("file", "message"),
    [
        ("notes.txt", "is not empty (it has notes.txt): nothing was written. Choose"),
        ("config.toml", "already is a project (it has config.toml): nothing was written. Add"),
    ],
)
def test_an_occupied_directory_is_refused(tmp_path: Path, file: str, message: str) -> None:
    (tmp_path / file).write_text("mine")
    said = call("init", str(tmp_path), "--yes")
    assert (said.code, len(said.err.splitlines())) == (1, 1)
    assert message in said.err
    assert [path.name for path in tmp_path.iterdir()] == [file]


def test_a_file_in_place_of_the_directory_is_refused(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    said = call("init", str(tmp_path / "file"), "--yes")
    assert (said.code, "is not a directory" in said.err) == (1, True)


def test_a_directory_below_a_file_is_named(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    said = call("init", str(tmp_path / "file" / "fleet"), "--yes")
    assert (said.code, len(said.err.splitlines())) == (1, 1)
    assert "Not a directory. Choose a directory that this user may write to." in said.err


def test_the_templates_are_listed_and_an_unknown_one_is_suggested() -> None:
    names = [row["name"] for row in call("agent", "templates", "--json").json]
    assert names == [
        *("script", "nightly-report", "pr-reviewer", "dependency-updater", "issue-worker")
    ]
    said = call("agent", "add", "x", "--template", "pr-review")
    assert "there is no template 'pr-review': did you mean 'pr-reviewer'?" in said.err


def test_a_directory_without_a_project_gets_no_agent(tmp_path: Path) -> None:
    stack = PrivateStack(tmp_path)
    refused = stack.manage("agent", "add", "x")
    assert refused.returncode == 1
    assert "is not a project: it has neither config.toml nor agents/." in refused.stderr
