"""Any text arrives unchanged, and no other process can read the token."""

import subprocess
from pathlib import Path

import psutil
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.agents_app.agent_bin.conftest import TOKEN, Caller
from tests.agents_app.agent_bin.recorder import Recorder

NASTY = [
    "",
    " ",
    "-",
    "--",
    "-n text",
    "--ttl",
    'it\'s "quoted" `twice`',
    "$(touch pwned) ${HOME} $HOME `touch pwned` ; touch pwned & | > pwned",
    "a\nb\n\n",
    "\n",
    "\\n \\ \\\\ %s %d %00 + &text=x =",
    "@/etc/passwd",
    "*",
    "/schedule list",
    "tab\tand\rreturn\x01\x1b[31m\x7f",
    "é ß 漢字 🐂 \u202e \ufeff",
    'x" \nheader = "X-Evil: 1',
    "a" * 100_000,
]
ANY_BYTES = st.binary(max_size=300).map(lambda data: data.replace(b"\0", b""))
ANY_TEXT = st.text(st.characters(exclude_characters="\0", codec="utf-8"), max_size=200)
REPEATED = settings(
    max_examples=10, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)


def sent(gateway: Recorder, field: str = "text") -> bytes:
    (value,) = gateway.last.values(field)
    return value


@pytest.mark.parametrize("text", NASTY, ids=lambda text: repr(text[:20]))
@pytest.mark.fault("F77")
def test_text_arrives_unchanged_as_an_argument_and_on_standard_input(
    drover: Caller, gateway: Recorder, text: str
) -> None:
    """Guard: F77. Put the text into a command line or an eval anywhere and this is red."""
    assert drover("drover", "call", "bob", "--", text).returncode == 0
    assert sent(gateway) == text.encode()
    assert drover("al-return", stdin=text.encode()).returncode == 0
    assert sent(gateway) == text.encode()
    assert list(drover.cwd.iterdir()) == []


@pytest.mark.parametrize("text", NASTY[:-1], ids=repr)
def test_the_value_of_metadata_may_be_any_text(plain: Caller, gateway: Recorder, text: str) -> None:
    assert plain("drover", "metadata", "key", "--", text).returncode == 0
    assert (sent(gateway, "key"), sent(gateway, "value")) == (b"key", text.encode())
    assert plain("drover", "metadata", "key", stdin=text.encode()).returncode == 0
    assert sent(gateway, "value") == text.encode()
    assert list(plain.cwd.iterdir()) == []


@pytest.mark.parametrize("text", [NASTY[7], NASTY[8], NASTY[11], NASTY[15]])
def test_a_lock_is_named_by_any_text(plain: Caller, gateway: Recorder, text: str) -> None:
    assert plain("rlock", text).returncode == 0
    assert sent(gateway, "uri") == text.encode()
    assert list(plain.cwd.iterdir()) == []


@REPEATED
@given(text=ANY_TEXT)
def test_any_text_arrives_unchanged(drover: Caller, gateway: Recorder, text: str) -> None:
    assert drover("drover", "status", "--", text).returncode == 0
    assert sent(gateway) == text.encode()


@REPEATED
@given(data=ANY_BYTES)
def test_bytes_that_are_no_text_arrive_unchanged(
    drover: Caller, gateway: Recorder, data: bytes
) -> None:
    assert drover("drover", "status", stdin=data).returncode == 0
    assert sent(gateway) == data
    assert drover("drover", "status", "--", data).returncode == 0
    assert sent(gateway) == data


def test_each_single_byte_arrives_unchanged(anywhere: Caller, gateway: Recorder) -> None:
    """Some shells use bytes from 0x81 up for themselves."""
    data = bytes(range(1, 256)) * 2
    assert anywhere("drover", "return", stdin=data).returncode == 0
    assert sent(gateway) == data
    assert anywhere("drover", "return", "--", data).returncode == 0
    assert sent(gateway) == data


def test_a_long_text_arrives_and_a_long_answer_is_shown(
    anywhere: Caller, gateway: Recorder
) -> None:
    """Guard: the shells' patterns. Cut the status off with `##*` and a megabyte takes minutes."""
    text = b"0123456789abcde\n" * 60_000
    gateway.answer((200, '{"ok": true, "returnValue": "' + "long text " * 100_000 + '"}'))
    done = anywhere("drover", "return", stdin=text)
    assert done.returncode == 0
    assert sent(gateway) == text
    assert len(done.stdout) == 1_000_032


def test_words_are_joined_by_single_spaces(drover: Caller, gateway: Recorder) -> None:
    assert drover("drover", "status", "two  spaces", "*", "and more").returncode == 0
    assert sent(gateway) == b"two  spaces * and more"


def test_only_the_first_two_dashes_are_left_out(plain: Caller, gateway: Recorder) -> None:
    plain("drover", "return", "--", "--", "--help")
    assert sent(gateway) == b"-- --help"


def test_the_token_is_on_no_command_line_while_a_command_waits(
    drover: Caller, gateway: Recorder
) -> None:
    """Guard: if curl gets the header as an argument, ps shows it to every user."""
    seen: list[str] = []

    def look() -> None:
        below = [started, *psutil.Process(started.pid).children(recursive=True)]
        for process in below:
            seen.append(Path(f"/proc/{process.pid}/cmdline").read_bytes().decode())

    gateway.when = look
    with subprocess.Popen(
        drover.argv("drover", "return", "done"),
        env=drover.environment(),
        cwd=drover.cwd,
        stdout=subprocess.DEVNULL,
    ) as started:
        assert started.wait(20) == 0
    assert len(seen) >= 2  # the shell, and the client that it called
    assert any("signals/return" in line for line in seen)
    assert not [line for line in seen if TOKEN in line or TOKEN[-12:] in line]


def test_a_malformed_token_does_not_reach_the_client(plain: Caller, gateway: Recorder) -> None:
    done = plain("drover", "rerun", DROVER_RUN_TOKEN='x"\nurl = "http://127.0.0.1:1/"')
    assert done.returncode == 3
    assert gateway.requests == []


@pytest.mark.parametrize("variable", ["http_proxy", "HTTP_PROXY", "ALL_PROXY"])
def test_a_proxy_of_the_agent_does_not_get_the_token(
    drover: Caller, gateway: Recorder, variable: str
) -> None:
    done = drover("drover", "rerun", **{variable: "http://127.0.0.1:1"})
    assert done.returncode == 0


def test_a_curlrc_of_the_agent_changes_nothing(plain: Caller, gateway: Recorder) -> None:
    (plain.cwd / ".curlrc").write_text('url = "http://127.0.0.1:1/"\nproxy = "127.0.0.1:1"\n')
    assert plain("drover", "rerun", HOME=str(plain.cwd)).returncode == 0
    assert len(gateway.requests) == 1
