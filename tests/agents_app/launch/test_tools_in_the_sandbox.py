"""Real tools run unchanged in the sandbox: git, Python, node, npm, Claude Code and Codex."""

import json
import os
import shutil
import sys
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

from agents_app.harness import HARNESSES
from agents_app.runners import this_kernel
from agents_app.worker.execute import Host
from tests.agents_app.executing import do, printed
from tests.agents_app.fleet import Fleet
from tests.parts.missing import missing

pytestmark = pytest.mark.django_db
# Where .ci/run installs the coding agents.
TOOLS = Path(os.environ.get("DROVER_TEST_TOOLS", "/nowhere")) / "node_modules" / ".bin"
INSTALL = "npm install --prefix DIR @anthropic-ai/claude-code @openai/codex; DROVER_TEST_TOOLS=DIR"


@pytest.fixture(autouse=True)
def _landlock() -> None:
    if this_kernel().missing:
        missing("a kernel with Landlock 6", "use Linux 6.12 or newer")


def tool(name: str, command: str) -> str:
    found = shutil.which(name) or shutil.which(name, path=str(TOOLS))
    return found or missing(name, command)


def output_of(fleet: Fleet, host: Host, script: str, **columns: Any) -> str:
    return output_of_command(fleet, host, "sh", "-ec", script, **columns)


def output_of_command(fleet: Fleet, host: Host, *command: str, **columns: Any) -> str:
    alone = {"sandbox": {}}
    run = do(fleet, host, fleet.agent(command=list(command), runtime=alone, **columns))
    assert (run.state, run.sandbox) == ("succeeded", "on"), printed(run.pk, 2) or run.error
    return printed(run.pk)


def test_git_makes_a_repository_and_commits(fleet: Fleet, host: Host):
    tool("git", "apt-get install git")
    script = (
        "git init -q r; cd r; echo x >f; git add f;"
        "git -c user.name=a -c user.email=a@b commit -qm first; git log --format=%s; git gc -q"
    )
    assert output_of(fleet, host, script) == "first\n"


def test_python_uses_its_library_processes_and_temporary_files(fleet: Fleet, host: Host):
    """The Python of Drover may be in a home directory: its prefix must be readable."""
    script = (
        "import multiprocessing as m, sqlite3, ssl, subprocess, tempfile\n"
        "if __name__ == '__main__':\n"
        "    with tempfile.TemporaryDirectory() as d: open(d + '/x', 'w').write('x')\n"
        "    with m.get_context('fork').Pool(2) as p: print(sum(p.map(abs, range(4))))\n"
        "    print(subprocess.run(['echo', 'sub'], capture_output=True, text=True).stdout)\n"
    )
    code = f"cat >s.py <<'END'\n{script}END\n{sys.executable} s.py; {sys.executable} -m venv v"
    assert output_of(fleet, host, code) == "6\nsub\n\n"


def test_node_and_npm_run_a_package(fleet: Fleet, host: Host):
    tool("node", "apt-get install nodejs")
    tool("npm", "apt-get install npm")
    script = (
        "npm init -y >/dev/null; npm pkg set scripts.hello='node -e \"console.log(1+1)\"';"
        "npm run -s hello; npm pack --silent"
    )
    assert output_of(fleet, host, script).startswith("2\n")


# --- coding agents --------------------------------------------------------------------------


class Model(BaseHTTPRequestHandler):
    """Answers as the Messages API streams: first a call of the tool Bash, then a text."""

    command_to_run = "git init -q r && echo from-the-tool > r/file && cat r/file"
    requests: list[dict[str, Any]]

    def log_message(self, *_: object) -> None: ...

    def do_HEAD(self) -> None:
        self.send_response(200)
        self.end_headers()

    def do_POST(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers["content-length"])))
        self.requests.append(body)
        has_result = "tool_result" in json.dumps(body.get("messages", ""))
        self.send_response(200)
        self.send_header("content-type", "text/event-stream")
        self.end_headers()
        for event in _events(None if has_result else self.command_to_run):
            data = json.dumps(event)
            self.wfile.write(f"event: {event['type']}\ndata: {data}\n\n".encode())


def _events(command: str | None) -> Iterator[dict[str, Any]]:
    usage = {"input_tokens": 5, "output_tokens": 7}
    message = {"id": "m1", "type": "message", "role": "assistant", "model": "claude-test"}
    started = message | {"content": [], "stop_reason": None, "usage": usage}
    yield {"type": "message_start", "message": started}
    if command is None:
        block, delta = {"type": "text", "text": ""}, {"type": "text_delta", "text": "All done."}
    else:
        block = {"type": "tool_use", "id": "t1", "name": "Bash", "input": {}}
        given = json.dumps({"command": command, "description": "x"})
        delta = {"type": "input_json_delta", "partial_json": given}
    yield {"type": "content_block_start", "index": 0, "content_block": block}
    yield {"type": "content_block_delta", "index": 0, "delta": delta}
    yield {"type": "content_block_stop", "index": 0}
    reason = "end_turn" if command is None else "tool_use"
    yield {"type": "message_delta", "delta": {"stop_reason": reason}, "usage": usage}
    yield {"type": "message_stop"}


@pytest.fixture
def model() -> Iterator[str]:
    Model.requests = []
    server = ThreadingHTTPServer(("127.0.0.1", 0), Model)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield f"http://127.0.0.1:{server.server_address[1]}"
    server.shutdown()
    server.server_close()


def test_claude_code_calls_its_tools(fleet: Fleet, host: Host, model: str):
    claude = tool("claude", INSTALL)
    argv = HARNESSES["claude-code"].argv("", ("--allowedTools", "Bash"))
    env = {
        "ANTHROPIC_BASE_URL": model,
        "ANTHROPIC_API_KEY": "for-a-scripted-model",
        "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1",
    }
    agent = fleet.agent(
        harness="claude-code",
        command=[claude, *argv[1:]],
        env=env,
        instructions="Do it.",
        runtime={"sandbox": {}},
    )
    run = do(fleet, host, agent)
    assert run.state == "succeeded", printed(run.pk) + printed(run.pk, 2)
    assert (run.sandbox, run.return_value) == ("on", "All done.")
    assert "from-the-tool" in json.dumps(Model.requests[-1]["messages"])


def test_codex_starts_inside_the_sandbox(fleet: Fleet, host: Host):
    codex = tool("codex", INSTALL)
    assert output_of_command(fleet, host, codex, "--version").startswith("codex")
