"""How commands find the gateway, what they do without one, retries and waiting."""

import json
import threading
import time
from pathlib import Path

import pytest

from tests.agents_app.agent_bin.conftest import Caller
from tests.agents_app.agent_bin.recorder import Recorder, serve
from tests.parts.ports import free_port

CLOSED = "http://127.0.0.1:1"
DONE = (200, '{"ok": true, "done": true, "calls": [{"callId": 1, "status": "completed"}]}')
UNDONE = (200, r'{"ok": true, "done": false, "calls": [{"text": "a \"done\": true in a text"}]}')


@pytest.fixture
def socket(gateway: Recorder, tmp_path: Path):
    path = tmp_path / "gateway.sock"
    server = serve(gateway, path)
    yield path
    server.shutdown()
    server.server_close()


# --- where ----------------------------------------------------------------------------------


def test_the_socket_is_used_where_there_is_one(
    drover: Caller, gateway: Recorder, socket: Path
) -> None:
    done = drover("drover", "rerun", DROVER_GATEWAY_SOCKET=str(socket), DROVER_GATEWAY_URL=CLOSED)
    assert (done.returncode, len(gateway.requests)) == (0, 1)
    done = drover("drover", "rerun", DROVER_GATEWAY_SOCKET=str(socket), DROVER_GATEWAY_URL=None)
    assert (done.returncode, len(gateway.requests)) == (0, 2)


def test_an_address_may_name_a_socket(drover: Caller, gateway: Recorder, socket: Path) -> None:
    done = drover("drover", "return", "hé", DROVER_GATEWAY_URL=f"unix://{socket}")
    assert (done.returncode, gateway.last.values("text")) == (0, ["hé".encode()])


def test_a_missing_socket_is_ignored_if_there_is_a_url(drover: Caller, gateway: Recorder) -> None:
    """A gateway on another machine has none on this one."""
    assert drover("drover", "rerun", DROVER_GATEWAY_SOCKET="/nowhere/x.sock").returncode == 0
    only = {"DROVER_GATEWAY_SOCKET": "/nowhere/x.sock", "DROVER_GATEWAY_URL": None}
    assert drover("drover", "rerun", **only).returncode == 6


def test_the_variable_gateway_url_of_older_agents_is_accepted(
    drover: Caller, gateway: Recorder
) -> None:
    done = drover("al-rerun", DROVER_GATEWAY_URL=None, GATEWAY_URL=f"{gateway.url}/")
    assert (done.returncode, gateway.last.path) == (0, "/v1/signals/rerun")


# --- none -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "words",
    [["lock", "x", "--ttl", "3"], ["unlock", "x"], ["lock-heartbeat", "x"]],
    ids=lambda w: w[0],
)
def test_without_a_gateway_lock_commands_succeed(drover: Caller, words: list[str]) -> None:
    done = drover("drover", *words, DROVER_GATEWAY_URL=None)
    assert (done.returncode, json.loads(done.stdout)) == (0, {"ok": True})


@pytest.mark.parametrize(
    ("words", "name", "content"),
    [
        (["rerun"], "rerun", b""),
        (["status", "a 'b' $c\n"], "status", b"a 'b' $c\n"),
        (["return", "--", "-n \\x"], "return", b"-n \\x"),
        (["exit"], "exit", b"15"),
        (["exit", "12"], "exit", b"12"),
    ],
    ids=str,
)
def test_without_a_gateway_signals_are_left_in_files(
    drover: Caller, tmp_path: Path, words: list[str], name: str, content: bytes
) -> None:
    signals = tmp_path / "the signals"
    signals.mkdir()
    done = drover("drover", *words, DROVER_GATEWAY_URL=None, AL_SIGNAL_DIR=str(signals))
    assert (done.returncode, json.loads(done.stdout)) == (0, {"ok": True})
    assert {path.name: path.read_bytes() for path in signals.iterdir()} == {name: content}


@pytest.mark.parametrize(
    "words",
    [["rerun"], ["return", "x"], ["call", "bob"], ["check", "1"], ["wait", "1"], ["inbox"]],
    ids=lambda w: w[0],
)
def test_without_a_gateway_and_a_signal_directory_commands_fail(
    drover: Caller, words: list[str]
) -> None:
    done = drover("drover", *words, DROVER_GATEWAY_URL=None)
    assert done.returncode == 5
    assert json.loads(done.stdout)["error"]["code"] == "no_gateway"


def test_a_missing_signal_directory_is_reported(plain: Caller, tmp_path: Path) -> None:
    gone = str(tmp_path / "gone")
    done = plain("drover", "rerun", DROVER_GATEWAY_URL=None, AL_SIGNAL_DIR=gone)
    assert done.returncode == 7
    assert json.loads(done.stdout)["error"]["code"] == "not_written"


# --- not yet --------------------------------------------------------------------------------


def test_a_gateway_that_starts_meanwhile_is_found(plain: Caller, gateway: Recorder) -> None:
    """Guard: a restart of the gateway loses no signal. Without the retries this is a 6."""
    port = free_port()
    servers = []
    later = threading.Timer(0.5, lambda: servers.append(serve(gateway, port=port)))
    later.start()
    where = f"http://127.0.0.1:{port}"
    done = plain("drover", "call", "b", DROVER_GATEWAY_URL=where, DROVER_RETRIES="5")
    later.join()
    servers[0].shutdown()
    servers[0].server_close()
    assert (done.returncode, len(gateway.requests)) == (0, 1)


@pytest.mark.parametrize("trouble", [(503, '{"error": {}}'), None], ids=["not ready", "hung up"])
def test_a_repeatable_signal_is_sent_again(
    drover: Caller, gateway: Recorder, trouble: tuple[int, str] | None
) -> None:
    gateway.answer(trouble, (200, '{"ok": true}'))
    done = drover("drover", "return", stdin=b"the text\n", DROVER_RETRIES="2")
    assert done.returncode == 0
    assert [request.values("text") for request in gateway.requests] == [[b"the text\n"]] * 2


@pytest.mark.parametrize(
    "words",
    [["call", "bob"], ["usage", "--tokens-in", "1"], ["schedule", "in 1 hour: x"], ["inbox"]],
    ids=lambda w: w[0],
)
def test_a_signal_that_would_take_effect_twice_is_sent_once(
    plain: Caller, gateway: Recorder, words: list[str]
) -> None:
    """Guard: a call whose answer was lost may have been made."""
    gateway.answer((503, '{"error": {}}'))
    assert plain("drover", *words, DROVER_RETRIES="2").returncode == 5
    gateway.answer(None)
    assert plain("drover", *words, DROVER_RETRIES="2").returncode == 6
    assert len(gateway.requests) == 1


# --- waiting --------------------------------------------------------------------------------


def test_wait_repeats_until_all_calls_have_ended(drover: Caller, gateway: Recorder) -> None:
    gateway.answer(UNDONE, UNDONE, DONE)
    done = drover("drover", "wait", "1", "2")
    assert done.returncode == 0
    assert json.loads(done.stdout)["calls"][0]["status"] == "completed"
    assert done.stdout.count(b"\n") == 1
    assert [request.values("ids") for request in gateway.requests] == [[b"1", b"2"]] * 3
    assert {int(request.values("timeout")[0]) for request in gateway.requests} == {20}


def test_wait_gives_up_when_its_time_is_over(drover: Caller, gateway: Recorder) -> None:
    gateway.answer(UNDONE)
    began_at = time.monotonic()
    done = drover("drover", "wait", "1", "--timeout", "2")
    assert done.returncode == 8
    assert time.monotonic() - began_at < 10
    assert json.loads(done.stdout)["done"] is False
    assert len(gateway.requests) in range(2, 5)


def test_wait_without_a_timeout_asks_once(plain: Caller, gateway: Recorder) -> None:
    gateway.answer(UNDONE)
    assert plain("drover", "wait", "1", "--timeout", "0").returncode == 8
    assert [request.values("timeout") for request in gateway.requests] == [[b"0"]]


def test_wait_ends_if_a_call_is_unknown(plain: Caller, gateway: Recorder) -> None:
    gateway.answer(UNDONE, (404, '{"error": {"code": "not_found"}}'))
    assert plain("drover", "wait", "1").returncode == 2


def test_wait_continues_after_a_restart_of_the_gateway(drover: Caller, gateway: Recorder) -> None:
    gateway.answer(UNDONE, None, DONE)
    assert drover("drover", "wait", "1", DROVER_RETRIES="3").returncode == 0
    assert len(gateway.requests) == 3


def test_the_inbox_waits_for_a_message_if_asked(drover: Caller, gateway: Recorder) -> None:
    empty, full = (200, '{"ok":true,"messages":[]}'), (200, '{"ok":true,"messages":[{"id":1}]}')
    gateway.answer(empty)
    assert drover("drover", "inbox").returncode == 0
    assert len(gateway.requests) == 1
    gateway.answer(empty, full)
    done = drover("drover", "inbox", "--timeout", "9")
    assert (done.returncode, json.loads(done.stdout)["messages"]) == (0, [{"id": 1}])
    assert len(gateway.requests) == 2


HELD = (409, '{"ok": false, "holder": "run 3", "error": {"code": "locked", "message": "held"}}')


def test_a_lock_is_asked_for_until_it_is_free(drover: Caller, gateway: Recorder) -> None:
    gateway.answer(HELD, HELD, (200, '{"ok": true}'))
    done = drover("drover", "lock", "db://x", "--wait", "60", "--ttl=9")
    assert (done.returncode, json.loads(done.stdout)) == (0, {"ok": True})
    assert len(gateway.requests) == 3
    assert dict(gateway.last.fields) == {
        b"wait": b"true", b"timeout": b"20", b"uri": b"db://x", b"ttl": b"9"
    }  # fmt: skip


def test_a_lock_that_stays_held_is_given_up(plain: Caller, gateway: Recorder) -> None:
    gateway.answer(HELD)
    assert plain("drover", "lock", "db://x").returncode == 1
    assert len(gateway.requests) == 1
    done = plain("drover", "lock", "db://x", "--wait", "1")
    assert (done.returncode, json.loads(done.stdout)["holder"]) == (1, "run 3")


def test_a_deadlock_is_not_waited_for(drover: Caller, gateway: Recorder) -> None:
    """Guard: it would never end by waiting."""
    said = '{"ok": false, "deadlock": true, "cycle": ["run 1", "run 2"], "error": {}}'
    gateway.answer((409, said))
    assert drover("drover", "lock", "db://x", "--wait", "60").returncode == 1
    assert len(gateway.requests) == 1
