"""Calls of Claude Code and Codex: recognised only if nothing but the call is in the command."""

import pytest

from agents_app.formats.model_commands import ModelCommand, recognise_model_command


@pytest.mark.parametrize(
    ("command", "found"),
    [
        ("claude -p 'Do it'", ModelCommand("claude-code", "Do it")),
        ('/usr/bin/claude --print "Do it"', ModelCommand("claude-code", "Do it")),
        ("claude 'Do it $HOME' -p", ModelCommand("claude-code", "Do it $HOME")),
        (
            "claude -p 'Do it' --model opus --max-turns 5 --output-format json --verbose",
            ModelCommand("claude-code", "Do it", "opus", ("--max-turns", "5")),
        ),
        (
            "claude -p 'Do it' --dangerously-skip-permissions >> /var/log/x.log 2>&1",
            ModelCommand(
                "claude-code",
                "Do it",
                arguments=("--dangerously-skip-permissions",),
                redirections=(">>", "/var/log/x.log", "2>&1"),
            ),
        ),
        ("codex exec --full-auto 'Fix'", ModelCommand("codex", "Fix", arguments=("--full-auto",))),
        ("codex exec -m o4 --json 'Fix'", ModelCommand("codex", "Fix", "o4")),
    ],
)
def test_a_call_is_recognised(command, found):
    assert recognise_model_command(command) == found


@pytest.mark.parametrize(
    "command",
    [
        "claude",
        "claude 'Do it'",
        "claude -p",
        'claude -p "Do it in $HOME"',
        'claude -p "Today is `date`"',
        "cd /srv && claude -p 'Do it'",
        "claude -p 'Do it' | tee log",
        "claude -p 'Do it'; rm -r x",
        "claude -p 'Do it' < input",
        "claude -p 'Do it' > $LOG",
        "claude -p 'Run !`date`'",
        "claude -p 'one' 'two'",
        "claude -p 'unclosed",
        "codex 'Fix'",
        "codex exec",
        "echo claude -p x",
        "",
    ],
)
def test_everything_else_stays_a_script(command):
    assert recognise_model_command(command) is None


def test_the_prompt_may_be_on_standard_input():
    assert recognise_model_command("claude -p", "Do it") == ModelCommand("claude-code", "Do it")
    assert recognise_model_command("codex exec -", "Fix") == ModelCommand("codex", "Fix")
    assert recognise_model_command("claude -p 'a'", "b") is None
