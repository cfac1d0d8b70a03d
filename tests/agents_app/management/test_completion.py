"""What a shell offers is what the commands take: asked in a real bash and a real zsh."""

import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from agents_app.cli.completion import SHELLS, loaded, own_commands, script, table
from agents_app.cli.examples import parsers_of
from agents_app.conf import ROOT
from tests.parts.missing import missing
from tests.parts.stack_part import PrivateStack

ASK_BASH = """
source "$1"; shift
COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1))
compopt() { :; }
_drover
printf '%s\\n' "${COMPREPLY[@]}"
"""
# The part of zsh that only works at a prompt is replaced; ours runs as it is.
ASK_ZSH = """
compdef() { :; }
compadd() { shift; print -rl -- "$@"; }
_files() { :; }
_describe() { print -rl -- "${(@)${(@P)4}%%:*}"; }
source "$1"; shift
words=("$@"); CURRENT=$#; PREFIX="${@[-1]}"
_drover
"""


# commandline works only at a prompt; the function that it calls runs as it is.
ASK_FISH = """
source $argv[2]
__drover_offers $argv[-1] $argv[4..-2] | string replace -r '\\t.*' ''
"""
ASK = {"bash": ASK_BASH, "zsh": ASK_ZSH, "fish": ASK_FISH}
QUIET = {"bash": "--norc", "zsh": "-f", "fish": "--no-config"}


@pytest.fixture(scope="module")
def stack(
    tmp_path_factory: pytest.TempPathFactory, migrated_database: Callable[[Path], str]
) -> Iterator[PrivateStack]:
    directory = tmp_path_factory.mktemp("completion")
    with PrivateStack(directory, migrated_database(directory / "data")) as stack:
        skill = "---\ndescription: x\ncommand: [echo]\nschedule: every 5 minutes\n---\nHello.\n"
        stack.write_agent("greeter", skill)
        stack.write_agent("grumbler", skill)
        assert stack.manage("discover", "--sync").returncode == 0
        stack.rows("UPDATE drover_schedule SET name = ?", "$(touch owned) `x`")
        for shell in SHELLS:
            text = script(shell, sys.executable, str(ROOT), "drover")
            (stack.data / f"completion.{shell}").write_text(text)
        yield stack


@pytest.fixture(params=SHELLS)
def offered(stack: PrivateStack, request: pytest.FixtureRequest) -> Callable[[str], list[str]]:
    """What the shell offers after these words, the last of which is not yet finished."""
    shell = shutil.which(request.param) or missing(request.param, f"apt install {request.param}")
    source = str(stack.data / f"completion.{request.param}")

    def after(line: str) -> list[str]:
        argv = [
            shell,
            QUIET[request.param],
            "-c",
            ASK[request.param],
            "ask",
            source,
            *line.split(" "),
        ]
        done = subprocess.run(
            argv, env=stack.env, cwd=stack.data, capture_output=True, text=True, check=False
        )
        assert done.stderr == ""
        typed = line.rpartition(" ")[2]
        words = [word for word in done.stdout.splitlines() if word]
        # At a prompt zsh leaves out what does not fit.
        return [word for word in words if word.startswith(typed)]

    return after


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("./manage.py st", ["stat", "status", "stop"]),
        ("./manage.py schedule re", ["resume", "retry"]),
        ("./manage.py run g", ["greeter", "grumbler"]),
        ("./manage.py logs greeter gru", ["grumbler"]),
        ("./manage.py schedule list --state pau", ["paused"]),
        ("./manage.py schedule list --agent gre", ["greeter"]),
        ("./manage.py run --prompt hello gre", ["greeter"]),
        ("./manage.py run --tenant def", ["default"]),
        ("./manage.py run --tenant other g", []),
        ("./manage.py run --pro", ["--prompt"]),
        ("./manage.py rerun --wai", ["--wait"]),
        ("./manage.py nothing-such x", []),
        ("drover st", ["stat", "status", "stop"]),
        ("drover run g", ["greeter", "grumbler"]),
        ("drover schedule list --state pau", ["paused"]),
    ],
)
def test_a_shell_offers_what_may_follow(
    offered: Callable[[str], list[str]], line: str, expected: list[str]
):
    assert offered(line) == expected


def test_a_name_is_offered_quoted_and_never_run(
    offered: Callable[[str], list[str]], stack: PrivateStack
):
    found = offered("./manage.py schedule show gr")
    assert len(found) == 2
    assert "touch" in found[0]
    assert not (stack.data / "owned").exists()


def test_completion_prints_nothing_without_a_database(
    offered: Callable[[str], list[str]], stack: PrivateStack, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setitem(stack.env, "DATABASE_URL", f"sqlite:///{stack.data}/none.sqlite3")
    assert offered("./manage.py run g") == []
    assert not (stack.data / "none.sqlite3").exists()


def test_every_option_of_every_command_is_in_the_table():
    lines = table()
    for name in own_commands():
        parser = loaded(name).create_parser("manage.py", name)
        for path, one in parsers_of(parser, name):
            assert any(line.startswith(f"O|{path}|--help|") for line in lines), path
            assert {line.count("|") for line in lines if line.startswith("O|")} == {4}
            assert one.epilog or path == "up", f"{path} --help has no example"


@pytest.mark.parametrize("shell", SHELLS)
def test_the_script_says_how_it_is_used(shell: str):
    text = script(shell, "/usr/bin/python3", "/srv/drover", "/opt/bin/drover")
    assert f"/opt/bin/drover completion {shell}" in text
    assert "@TABLE@" not in text and "@ROOT@" not in text and "@PROGRAM@" not in text
