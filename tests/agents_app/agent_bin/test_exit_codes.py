"""Every command prints the answer, and its exit code follows from the HTTP status."""

import json

import pytest

from tests.agents_app.agent_bin.conftest import TOKEN, Caller
from tests.agents_app.agent_bin.recorder import Recorder

# How each is called, and what the gateway must get.
COMMANDS: dict[str, tuple[list[str], str, dict[str, list[bytes]]]] = {
    "rerun": (["drover", "rerun"], "rerun", {}),
    "status": (["drover", "status", "at", "work"], "status", {"text": [b"at work"]}),
    "progress": (["drover", "progress", "37.5"], "progress", {"percent": [b"37.5"]}),
    "metadata": (
        ["drover", "metadata", "changed", "true"],
        "metadata",
        {"key": [b"changed"], "value": [b"true"]},
    ),
    "progress with a text": (
        ["drover", "progress", "50", "half"],
        "progress",
        {"percent": [b"50"], "text": [b"half"]},
    ),
    "return": (["drover", "return", "42"], "return", {"text": [b"42"]}),
    "exit": (["drover", "exit"], "exit", {"code": [b"15"]}),
    "exit with a code": (["drover", "exit", "12"], "exit", {"code": [b"12"]}),
    "call": (["drover", "call", "bob", "go"], "call", {"agent": [b"bob"], "text": [b"go"]}),
    "check": (["drover", "check", "9"], "check", {"id": [b"9"]}),
    "lock": (["drover", "lock", "file:///a b"], "lock", {"uri": [b"file:///a b"]}),
    "lock with options": (
        ["drover", "lock", "--ttl", "60", "db://x", "--wait=0"],
        "lock",
        {"uri": [b"db://x"], "ttl": [b"60"]},
    ),
    "unlock": (["drover", "unlock", "db://x"], "unlock", {"uri": [b"db://x"]}),
    "lock-heartbeat": (
        ["drover", "lock-heartbeat", "db://x", "--ttl", "5"],
        "lock-heartbeat",
        {"uri": [b"db://x"], "ttl": [b"5"]},
    ),
    "schedule": (
        ["drover", "schedule", "in 1 hour: look again"],
        "schedule",
        {"line": [b"in 1 hour: look again"]},
    ),
    "inbox": (["drover", "inbox", "--peek"], "inbox", {"peek": [b"true"], "timeout": [b"0"]}),
    "usage": (
        ["drover", "usage", "--tokens-in", "3", "--tokens-out=4", "--cost-usd", "0.25"],
        "usage",
        {"tokens_in": [b"3"], "tokens_out": [b"4"], "cost_usd": [b"0.25"]},
    ),
    "shutdown": (["drover", "shutdown"], "shutdown", {}),
    "al-rerun": (["al-rerun"], "rerun", {}),
    "al-status": (["al-status", "x"], "status", {"text": [b"x"]}),
    "al-return": (["al-return", "x"], "return", {"text": [b"x"]}),
    "al-exit": (["al-exit", "16"], "exit", {"code": [b"16"]}),
    "al-subagent": (["al-subagent", "bob"], "call", {"agent": [b"bob"], "text": [b""]}),
    "al-subagent-check": (["al-subagent-check", "9"], "check", {"id": [b"9"]}),
    "rlock": (["rlock", "db://x"], "lock", {"uri": [b"db://x"]}),
    "runlock": (["runlock", "db://x"], "unlock", {"uri": [b"db://x"]}),
    "rlock-heartbeat": (["rlock-heartbeat", "db://x"], "lock-heartbeat", {"uri": [b"db://x"]}),
    "al-shutdown": (["al-shutdown"], "shutdown", {}),
}
WAITS = {
    "wait": (["drover", "wait", "1", "2", "--timeout", "5"], "wait", {"ids": [b"1", b"2"]}),
    "al-subagent-wait": (["al-subagent-wait", "8"], "wait", {"ids": [b"8"]}),
}
CODES = {
    200: 0, 201: 0, 409: 1, 404: 2, 401: 3, 403: 3, 400: 4, 413: 4, 422: 4, 503: 5,
    302: 7, 405: 7, 418: 7, 502: 10, 504: 11, 500: 12,
}  # fmt: skip


def body(status: int) -> str:
    if status < 300:
        return '{"ok": true, "done": true, "messages": [1]}'
    return json.dumps({"error": {"code": "x", "message": f'a "quoted" {status}\n\\ é'}})


@pytest.mark.parametrize("name", [*COMMANDS, *WAITS])
def test_each_command_sends_its_fields_to_the_gateway(
    drover: Caller, gateway: Recorder, name: str
) -> None:
    words, path, fields = (COMMANDS | WAITS)[name]
    gateway.answer((200, body(200)))
    done = drover(*words)
    assert (done.returncode, done.stderr) == (0, b"")
    assert json.loads(done.stdout) == json.loads(body(200))
    assert gateway.last.path == f"/v1/signals/{path}"
    assert gateway.last.token == TOKEN
    assert gateway.last.kind == "application/x-www-form-urlencoded"
    got = {key.decode(): gateway.last.values(key.decode()) for key, _ in gateway.last.fields}
    if path == "wait":
        assert int(got.pop("timeout")[0]) in range(4, 21)
    assert got == fields
    assert len(gateway.requests) == 1


@pytest.mark.parametrize("status", [200, 409, 404, 403, 400, 503, 418, 502, 504, 500])
def test_the_exit_code_of_every_command_follows_from_the_answer(
    plain: Caller, gateway: Recorder, status: int
) -> None:
    gateway.answer((status, body(status)))
    # The other names are links to the same script.
    for words in [words for words, _, _ in (COMMANDS | WAITS).values() if words[0] == "drover"]:
        done = plain(*words)
        assert (done.returncode, done.stderr) == (CODES[status], b""), words
        assert json.loads(done.stdout) == json.loads(body(status))


def test_the_exit_code_is_the_same_in_every_shell_with_every_client(
    anywhere: Caller, gateway: Recorder
) -> None:
    for status, code in CODES.items():
        gateway.answer((status, body(status)))
        done = anywhere("rlock", "db://x")
        assert (done.returncode, done.stderr) == (code, b""), status
        assert json.loads(done.stdout) == json.loads(body(status))


@pytest.mark.parametrize("said", ["", "<html>Bad gateway</html>", "[1]"])
def test_an_answer_that_is_not_from_drover_is_unexpected_and_still_json(
    drover: Caller, gateway: Recorder, said: str
) -> None:
    """Guard: a proxy's page is not passed on as if it were an answer."""
    gateway.answer((200, said))
    done = drover("drover", "rerun")
    assert done.returncode == 7
    assert json.loads(done.stdout)["error"]["code"] == "unexpected"
    gateway.answer((502, said))
    assert drover("drover", "rerun").returncode == 10


def test_a_missing_gateway_is_unreachable(drover: Caller) -> None:
    done = drover("drover", "rerun", DROVER_GATEWAY_URL="http://127.0.0.1:1")
    assert done.returncode == 6
    assert json.loads(done.stdout)["error"]["code"] == "unreachable"
    done = drover("drover", "rerun", DROVER_GATEWAY_URL="unix:///nowhere/gateway.sock")
    assert done.returncode == 6


def test_a_gateway_that_closes_the_connection_is_unreachable(
    drover: Caller, gateway: Recorder
) -> None:
    gateway.answer(None)
    assert drover("drover", "call", "bob").returncode == 6
    assert len(gateway.requests) == 1


@pytest.mark.parametrize(
    "words",
    [
        [],
        ["fly"],
        ["call"],
        ["call", "--help-me"],
        ["check"],
        ["check", "1", "2"],
        ["wait"],
        ["wait", "1", "--timeout"],
        ["wait", "1", "--timeout", "soon"],
        ["wait", "1", "--timeout", "010"],
        ["wait", "1", "--timeout", "9" * 30],
        ["wait", "1", "--ttl", "3"],
        ["lock"],
        ["lock", "a", "b"],
        ["lock", "a", "--ttl", "-1"],
        ["lock", "a", "--peek"],
        ["rerun", "now"],
        ["exit", "256"],
        ["exit", "twelve"],
        ["exit", "1", "2"],
        ["progress"],
        ["metadata"],
        ["metadata", "--help-me"],
        ["progress", "half"],
        ["progress", "1.2.3"],
        ["usage"],
        ["usage", "--tokens-in", "1.5"],
        ["usage", "--cost-usd", "cheap"],
        ["inbox", "all"],
    ],
    ids=" ".join,
)
def test_a_usage_error_is_explained_and_sends_nothing(
    plain: Caller, gateway: Recorder, words: list[str]
) -> None:
    done = plain("drover", *words)
    assert (done.returncode, done.stdout) == (9, b"")
    assert done.stderr.startswith(b"drover: ")
    assert gateway.requests == []


def test_every_command_has_help(drover: Caller, gateway: Recorder) -> None:
    everything = drover("drover", "--help")
    assert everything.returncode == 0
    for name in {words[1] for words, _, _ in COMMANDS.values() if words[0] == "drover"}:
        assert f"  drover {name}".encode() in everything.stdout
        one = drover("drover", name, "--help")
        assert one.returncode == 0
        assert one.stdout.startswith(f"  drover {name}".encode())
    assert drover("rlock", "--help").stdout.startswith(b"  drover lock URI")
    assert gateway.requests == []


def test_without_curl_and_python_the_command_names_what_is_missing(plain: Caller) -> None:
    (plain.tools / "curl").unlink()
    done = plain("drover", "rerun")
    assert done.returncode == 6
    assert json.loads(done.stdout)["error"]["code"] == "no_client"


def test_a_command_of_the_operator_inside_a_run_is_explained(plain: Caller) -> None:
    done = plain("drover", "up")
    assert done.returncode == 9
    assert b"there is no command up. Inside a run, drover sends signals of the agent" in done.stderr
