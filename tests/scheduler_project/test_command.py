"""The program `drover`: help without Django, the project of the directory, and clear refusals."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from agents_app import __version__
from agents_app.signals.declarations import SIGNALS
from scheduler_project import command_table as table
from scheduler_project.command import OPTIONS, take_options
from tests.parts.stack_part import ROOT

LOADED = """
import sys
from scheduler_project.command import main
try:
    main(sys.argv[1:])
finally:
    print([name for name in ("django", "agents_app.conf") if name in sys.modules])
"""
SKILL = "---\ndescription: x\ncommand: [echo]\nschedule: every 5 minutes\n---\nHello.\n"


def drover(
    *words: str, cwd: Path = ROOT, code: str = "", **env: str
) -> subprocess.CompletedProcess[str]:
    argv = ["-c", code] if code else ["-m", "scheduler_project.command"]
    return subprocess.run(
        [sys.executable, *argv, *words],
        cwd=cwd,
        env={"PATH": os.environ["PATH"], "HOME": str(cwd), "PYTHONPATH": str(ROOT), **env},
        capture_output=True,
        text=True,
        check=False,
    )


@pytest.mark.parametrize("words", [["--version"], ["--help"], ["--names", "agents"]])
def test_version_help_and_names_do_not_load_django(words: list[str], tmp_path: Path):
    done = drover(*words, code=LOADED, cwd=tmp_path)
    assert done.stdout.splitlines()[-1] == "[]", done.stderr


def test_the_version_is_that_of_the_package():
    assert drover("--version").stdout == f"drover {__version__}\n"


def test_help_lists_every_command_with_one_line_and_no_option_of_django():
    text = drover().stdout
    listed = {line.split()[0] for line in text.splitlines() if line.startswith("  ")}
    assert listed == {name.replace("_", "-") for name in table._modules()} | {"manage"}
    assert not [line for line in text.splitlines() if len(line) > 90]
    assert "--settings" not in text


def test_every_command_of_agents_is_known_to_the_table():
    assert {name for name in SIGNALS if not table.is_command(name)} <= table.OF_AGENTS


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (["sata"], "there is no command 'sata': did you mean `drover stat`?"),
        (["--verbose"], "there is no option --verbose"),
        (["return", "done"], "`drover return` is a command of agents and works inside a run"),
        (["--project"], "--project needs a value"),
    ],
)
def test_a_wrong_word_is_one_line_that_says_what_to_do(words: list[str], expected: str):
    done = drover(*words)
    assert done.returncode == 2
    assert expected in done.stderr and done.stderr.count("\n") == 1
    assert "drover --help" in done.stderr or "needs a value" in done.stderr


def test_a_directory_without_a_project_is_refused_in_one_line(tmp_path: Path):
    done = drover("stat", cwd=tmp_path)
    assert done.returncode == 1
    assert done.stderr.startswith(f"drover: there is no project in {tmp_path} or above it.")
    assert "drover init" in done.stderr and list(tmp_path.iterdir()) == []


def test_commands_find_project_and_data_from_a_directory_below(tmp_path: Path):
    agent = tmp_path / "fleet" / "agents" / "greeter"
    agent.mkdir(parents=True)
    (agent / "SKILL.md").write_text(SKILL)
    assert drover("manage", "migrate", "-v", "0", cwd=agent).stderr == ""
    done = drover("discover", "--sync", cwd=agent)
    assert done.returncode == 0, done.stderr
    state = tmp_path / "fleet" / ".drover"
    assert (state / "data" / "drover.sqlite3").exists()
    assert (state / ".gitignore").read_text().splitlines()[-1] == "*"
    assert drover("--names", "agents", cwd=agent).stdout == "greeter\n"
    helped = drover("why", "--help", cwd=tmp_path)
    assert helped.stdout.startswith("usage: drover why [-h]") and "--settings" not in helped.stdout
    assert "  drover why reporter\n" in helped.stdout


def test_a_credential_before_the_first_start_is_refused_with_the_remedy(tmp_path: Path):
    agent = tmp_path / "agents" / "greeter"
    agent.mkdir(parents=True)
    (agent / "SKILL.md").write_text(SKILL)
    value = tmp_path / "value"
    value.write_text("v")
    done = drover("credential", "set", "openai_key", "--file", str(value), cwd=tmp_path)
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr == (
        "drover: the database has no tables yet: start Drover once (drover up)\n"
    )


def test_options_of_drover_may_stand_before_and_after_the_command(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
):
    for variable in OPTIONS.values():
        monkeypatch.setenv(variable, "")
    monkeypatch.chdir(tmp_path)
    words = ["--project=fleet", "run", "greeter", "--data", "data", "--", "--data", "x"]
    assert take_options(words) == ["run", "greeter", "--", "--data", "x"]
    assert os.environ["DROVER_PROJECT"] == str(tmp_path / "fleet")
    assert os.environ["DROVER_DATA"] == str(tmp_path / "data")
    assert take_options(["tenant", "create", "x", "--project", "y"])[-1] == "y"


def test_an_address_chooses_a_remote_drover_and_a_project_this_machine(
    monkeypatch: pytest.MonkeyPatch,
):
    for variable in OPTIONS.values():
        monkeypatch.setenv(variable, "")
    assert take_options(["--url", "https://x", "stat", "--token-file", "t"]) == ["stat"]
    assert os.environ["DROVER_URL"] == "https://x"
    assert os.environ["DROVER_TOKEN_FILE"].endswith("/t")
    take_options(["stat", "--project", "fleet"])
    assert "DROVER_URL" not in os.environ


def test_hints_name_the_program_that_was_called(tmp_path: Path):
    (tmp_path / "agents").mkdir()
    (tmp_path / "config.toml").write_text("")
    assert drover("manage", "migrate", "-v", "0", cwd=tmp_path).stderr == ""
    assert drover("discover", "--sync", cwd=tmp_path).returncode == 0
    done = drover("run", "greeter", cwd=tmp_path)
    assert "(drover stat lists the agents)" in done.stderr
