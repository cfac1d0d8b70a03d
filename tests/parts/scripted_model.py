"""A model that answers as written, behind the addresses that Claude Code and Codex call.

The tools are real: they get a call of a tool, execute or refuse it, and send its result back.
"""

import json
import os
import shutil
import threading
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

from tests.parts.missing import missing

ANSWER = "All done."
# Where .ci/run installs the coding agents.
TOOLS = Path(os.environ.get("DROVER_TEST_TOOLS", "/nowhere")) / "node_modules" / ".bin"
INSTALL = "npm install --prefix DIR @anthropic-ai/claude-code @openai/codex; DROVER_TEST_TOOLS=DIR"
_UPGRADE_REQUIRED = 426
Json = dict[str, Any]


def coding_tool(name: str) -> str:
    """The path of `claude` or `codex`; skips the test if it is not installed."""
    found = shutil.which(name) or shutil.which(name, path=str(TOOLS))
    return found or missing(name, INSTALL)


@dataclass(frozen=True, slots=True)
class Asked:
    """A request; `key` is what the tool has authenticated with."""

    key: str
    body: Json


@dataclass
class ScriptedModel:
    """First asks for `command` with the shell tool of Claude Code, if there is one; then answers.

    Codex gets the answer only."""

    command: str = ""
    asked: list[Asked] = field(default_factory=list)

    def __enter__(self) -> "ScriptedModel":
        model = self

        class Handler(_Handler):
            script = model

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        threading.Thread(target=self._server.serve_forever, daemon=True).start()
        return self

    def __exit__(self, *_: object) -> None:
        self._server.shutdown()
        self._server.server_close()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self._server.server_address[1]}"

    @property
    def tool_results(self) -> list[Json]:
        """What Claude Code has reported about the calls of its tools, with the last request."""
        messages = self.asked[-1].body["messages"]
        parts = [part for message in messages for part in _parts(message)]
        return [part for part in parts if part.get("type") == "tool_result"]

    def events(self, path: str, body: Json) -> Sequence[Json]:
        if path.partition("?")[0].endswith("/responses"):
            return tuple(_responses())
        has_result = "tool_result" in json.dumps(body.get("messages", ""))
        return tuple(_messages("" if has_result else self.command))


class _Handler(BaseHTTPRequestHandler):
    script: ScriptedModel
    # Codex repeats a request for five seconds that an older version answers.
    protocol_version = "HTTP/1.1"

    def log_message(self, *_: object) -> None: ...

    def do_HEAD(self) -> None:
        self._answer(200, "")

    def do_GET(self) -> None:
        # Codex asks for a WebSocket first; this answer makes it send plain requests.
        self._answer(_UPGRADE_REQUIRED, "")

    def do_POST(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers["content-length"])))
        bearer = str(self.headers.get("authorization", "")).removeprefix("Bearer ")
        key = str(self.headers.get("x-api-key") or bearer)
        self.script.asked.append(Asked(key, body))
        events = self.script.events(self.path, body)
        parts = (f"event: {each['type']}\ndata: {json.dumps(each)}\n\n" for each in events)
        self._answer(200, "".join(parts))

    def _answer(self, status: int, text: str) -> None:
        self.send_response(status)
        self.send_header("content-type", "text/event-stream")
        self.send_header("content-length", str(len(text.encode())))
        self.end_headers()
        self.wfile.write(text.encode())


def _parts(message: Json) -> list[Json]:
    content = message["content"]
    return content if isinstance(content, list) else []


def _messages(command: str) -> Iterator[Json]:
    """As the Messages API streams a call of the tool Bash, or without a command the answer."""
    usage = {"input_tokens": 5, "output_tokens": 7}
    message = {"id": "m1", "type": "message", "role": "assistant", "model": "claude-test"}
    started: Json = message | {"content": [], "stop_reason": None, "usage": usage}
    yield {"type": "message_start", "message": started}
    if command:
        block = {"type": "tool_use", "id": "t1", "name": "Bash", "input": {}}
        given = json.dumps({"command": command, "description": "x"})
        delta = {"type": "input_json_delta", "partial_json": given}
    else:
        block, delta = {"type": "text", "text": ""}, {"type": "text_delta", "text": ANSWER}
    yield {"type": "content_block_start", "index": 0, "content_block": block}
    yield {"type": "content_block_delta", "index": 0, "delta": delta}
    yield {"type": "content_block_stop", "index": 0}
    reason = "tool_use" if command else "end_turn"
    yield {"type": "message_delta", "delta": {"stop_reason": reason}, "usage": usage}
    yield {"type": "message_stop"}


def _responses() -> Iterator[Json]:
    """As the Responses API streams an answer."""
    content = [{"type": "output_text", "text": ANSWER}]
    item = {"type": "message", "role": "assistant", "id": "m1", "content": content}
    usage = {
        "input_tokens": 50,
        "input_tokens_details": {"cached_tokens": 20},
        "output_tokens": 5,
        "output_tokens_details": None,
        "total_tokens": 55,
    }
    yield {"type": "response.created", "response": {"id": "r1"}}
    yield {"type": "response.output_item.done", "item": item}
    yield {"type": "response.completed", "response": {"id": "r1", "usage": usage}}
