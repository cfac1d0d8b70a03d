"""`up` on a terminal, in the background, and under a service manager: real processes."""

import re
import socket
import subprocess
import sys
import tempfile
import threading
import urllib.error
import urllib.request
from http.cookiejar import CookieJar
from pathlib import Path

import pytest

from agents_app.conf import ROOT
from agents_app.installation.up_lock import running_up
from tests.agents_app.management.on_terminal import on_terminal
from tests.parts.fixtures import NewStack
from tests.parts.processes import all_gone, tree_of
from tests.parts.stack_part import PrivateStack
from tests.parts.waiting import wait_for

HELLO = "---\ndescription: says hello\nschedule: 1s\nharness: shell\n---\necho hello\n"
TIME = r"^\d\d:\d\d:\d\d "


class ServiceManager:
    """Receives the messages of sd_notify on a socket of its own."""

    def __init__(self, path: str) -> None:
        self.path, self.lines = path, list[bytes]()
        self._socket = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        self._socket.bind(path)
        threading.Thread(target=self._read, daemon=True).start()

    def wait_for(self, line: str, count: int = 1) -> None:
        wait_for(lambda: self.lines.count(line.encode()) >= count, 10, lambda: f"{self.lines}")

    def _read(self) -> None:
        while True:
            self.lines.extend(self._socket.recv(4096).split(b"\n"))


def test_a_terminal_shows_progress_a_banner_and_readable_lines_and_systemd_is_notified(
    new_stack: NewStack,
) -> None:
    stack = new_stack()
    stack.write_agent("hello", HELLO)
    with tempfile.TemporaryDirectory() as directory:
        systemd = ServiceManager(f"{directory}/notify")
        variables = {"NOTIFY_SOCKET": systemd.path, "WATCHDOG_USEC": "400000"}
        with on_terminal(stack, "up", **variables) as terminal:
            systemd.wait_for("STATUS=starting worker-1, beat, gateway")
            terminal.wait_for("Drover is ready", 60)
            systemd.wait_for("READY=1")
            systemd.wait_for(f"STATUS=ready at {stack.url}")
            systemd.wait_for("WATCHDOG=1", 3)
            terminal.wait_for("hello #1 succeeded in ", 30)
            assert terminal.interrupt() == 0, terminal.text
            systemd.wait_for("STOPPING=1")
    lines = terminal.lines
    banner = lines.index(next(line for line in lines if line.startswith("Drover is ready")))
    assert "starting redis" in lines[:banner]
    assert lines[banner + 1] == f"  dashboard  {stack.url}/admin/ (user admin)"
    assert lines[banner + 2].startswith("  login      manage.py login_link")
    assert lines[banner + 3] == f"  project    {stack.project}"
    assert [line for line in lines if re.match(TIME + r"hello #1 started \(schedule\)$", line)]
    assert [line for line in lines if re.match(TIME + r"hello #1 succeeded in \d+", line)]
    assert "{" not in terminal.text
    assert re.search(r"\x1b\[\d+mhello\x1b\[0m #1 succeeded", terminal.raw)


def test_up_in_the_background_returns_when_ready_and_down_ends_all_processes(
    new_stack: NewStack,
) -> None:
    stack = new_stack()
    stack.write_agent("hello", HELLO)
    assert stack.manage("status").returncode == 3
    started = stack.manage("up", "-d", "--log-format", "json")
    assert started.returncode == 0, started.stderr
    process = running_up(stack.data)
    assert process is not None
    try:
        assert f"dashboard  {stack.url}/admin/" in started.stdout
        assert f"manage.py down (process {process})" in started.stdout
        status = stack.manage_json("status")
        assert (status["process"], status["address"]) == (process, stack.url)
        second = stack.manage("up", "-d")
        assert (second.returncode, len(second.stderr.splitlines())) == (1, 1)
        assert f"as process {process} at {stack.url}." in second.stderr
        log_in_with_a_link(stack)
        below = tree_of(process)
    finally:
        ended = stack.manage("down")
    assert ended.stdout == f"Drover stopped (process {process})\n"
    assert all_gone(below)
    assert "does not run" in stack.manage("down").stdout
    lines = (stack.data / "logs" / "up.log").read_text().splitlines()
    assert [line for line in lines if not line.startswith('{"role": ')] == []


def log_in_with_a_link(stack: PrivateStack) -> None:
    """A preview of the link does not use it up, and the button does."""
    url = stack.manage_json("login_link")["url"]
    assert url.startswith(f"{stack.url}/admin/login/link/")
    urllib.request.urlopen(url, timeout=20).close()
    browser = urllib.request.build_opener(urllib.request.HTTPCookieProcessor(CookieJar()))
    with browser.open(url, timeout=20) as page:
        token = re.search(r'name="csrfmiddlewaretoken" value="(\w+)"', page.read().decode())
    assert token
    form = f"csrfmiddlewaretoken={token[1]}".encode()
    with browser.open(url, form, timeout=20) as page:
        assert page.url == f"{stack.url}/admin/"
        assert "says hello" in page.read().decode() or page.status == 200
    with pytest.raises(urllib.error.HTTPError, match="410"):
        urllib.request.urlopen(url, timeout=20)


def test_a_background_start_that_fails_says_why(new_stack: NewStack, tmp_path: Path) -> None:
    stack = new_stack()
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
        stack.env["DROVER_PORT"] = str(port)
        refused = stack.manage("up", "-d")
    assert (refused.returncode, len(refused.stderr.splitlines())) == (1, 1)
    assert f"port {port} is in use. Set DROVER_PORT to a free port." in refused.stderr
    stack.env["DROVER_PORT"] = "0"
    (tmp_path / "file").touch()
    stack.env["DROVER_DATA"] = str(tmp_path / "file" / "data")
    done = subprocess.run(
        [sys.executable, "manage.py", "up", "-d"],
        cwd=ROOT,
        env=stack.env,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 1
    assert "file/data cannot be used: Not a directory. Make it writable" in done.stderr
    assert "Traceback" not in done.stderr
