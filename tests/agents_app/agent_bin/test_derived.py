"""The script and its links match the declarations of the signals."""

from dataclasses import replace
from pathlib import Path

import pytest

from agents_app.signals import SIGNALS
from agents_app.signals.contract import Command, CommandOption
from agents_app.signals.shell_command import SCRIPT, aliases, rendered, usage_lines, write_command
from tests.agents_app.agent_bin.conftest import Caller
from tests.agents_app.agent_bin.recorder import Recorder
from tests.agents_app.agent_bin.test_exit_codes import COMMANDS, WAITS


def test_the_committed_script_matches_the_declarations() -> None:
    """If this fails, run `make agent-command` and commit the result."""
    assert SCRIPT.read_text() == rendered(SCRIPT.read_text())


def test_the_committed_links_match_the_declarations() -> None:
    links = {
        path.name: path.readlink().name for path in SCRIPT.parent.iterdir() if path.is_symlink()
    }
    assert links == dict.fromkeys(aliases(), "drover")


@pytest.fixture
def with_another_signal(monkeypatch: pytest.MonkeyPatch) -> None:
    command = Command(
        "ID", "id", (CommandOption("max-size", "N"),), check="one_word", aliases=("al-inspect",)
    )
    added = replace(SIGNALS["check"], name="inspect", summary="It's new", command=command)
    monkeypatch.setitem(SIGNALS, "inspect", added)


def test_a_signal_that_is_added_is_a_command_after_the_script_is_written(
    with_another_signal: None, plain: Caller, gateway: Recorder, tmp_path: Path
) -> None:
    copy = tmp_path / "bin" / "drover"
    copy.parent.mkdir()
    copy.write_text(SCRIPT.read_text())
    write_command(copy)
    assert plain(str(copy), "inspect", "7", "--max-size", "3").returncode == 0
    assert gateway.last.path == "/v1/signals/inspect"
    assert dict(gateway.last.fields) == {b"id": b"7", b"max_size": b"3"}
    assert plain(str(copy.with_name("al-inspect")), "8").returncode == 0
    assert gateway.last.values("id") == [b"8"]
    assert b"inspect ID [--max-size N]" in plain(str(copy), "--help").stdout
    assert b"It's new" in plain(str(copy), "inspect", "--help").stdout


def test_a_long_usage_is_wrapped_between_options() -> None:
    assert [usage for usage, _ in usage_lines(SIGNALS["usage"])] == [
        "usage [--tokens-in N] [--tokens-out N]",
        "      [--tokens-cache N] [--cost-usd X]",
    ]


def test_every_link_has_a_test() -> None:
    assert {words[0] for words, _, _ in (COMMANDS | WAITS).values()} == {"drover", *aliases()}
