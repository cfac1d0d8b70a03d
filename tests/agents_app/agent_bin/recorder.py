"""A small HTTP server in place of the gateway: gives prepared answers and records requests."""

import os
import socketserver
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler
from pathlib import Path
from urllib.parse import unquote_to_bytes

Fields = list[tuple[bytes, bytes]]


@dataclass(frozen=True)
class Request:
    path: str
    token: str
    kind: str
    fields: Fields

    def values(self, name: str) -> list[bytes]:
        return [value for key, value in self.fields if key == name.encode()]


@dataclass
class Recorder:
    """`answers` are given in turn, the last one for ever; None closes without a word."""

    answers: list[tuple[int, str] | None] = field(default_factory=lambda: [(200, '{"ok": true}')])
    seconds: float = 0.0
    requests: list[Request] = field(default_factory=list)
    when: Callable[[], None] = lambda: None
    url: str = ""

    def answer(self, *answers: tuple[int, str] | None) -> None:
        self.answers = list(answers)
        self.requests.clear()

    @property
    def last(self) -> Request:
        return self.requests[-1]

    def take(self, request: Request) -> tuple[int, str] | None:
        self.requests.append(request)
        self.when()
        time.sleep(self.seconds)
        return self.answers.pop(0) if len(self.answers) > 1 else self.answers[0]


def decoded(form: bytes) -> Fields:
    """Not parse_qsl, which makes text of it and cannot take what is none."""
    pairs = (pair.partition(b"=") for pair in form.replace(b"+", b" ").split(b"&") if pair)
    return [(unquote_to_bytes(name), unquote_to_bytes(value)) for name, _, value in pairs]


class _Tcp(socketserver.ThreadingTCPServer):
    allow_reuse_address = daemon_threads = True


class _Unix(socketserver.ThreadingUnixStreamServer):
    daemon_threads = True


def serve(recorder: Recorder, where: Path | None = None, port: int = 0) -> socketserver.BaseServer:
    """Listens on a free port of loopback, or on a socket; the caller shuts it down."""

    class Handler(BaseHTTPRequestHandler):
        def address_string(self) -> str:
            return ""

        def log_message(self, *_: object) -> None:
            pass

        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["Content-Length"]))
            pairs = decoded(body)
            token = self.headers["Authorization"].removeprefix("Bearer ")
            kind = self.headers["Content-Type"]
            said = recorder.take(Request(self.path, token, kind, pairs))
            if said is None:
                return
            status, text = said
            self.send_response(status)
            self.send_header("Content-Length", str(len(text.encode())))
            self.end_headers()
            self.wfile.write(text.encode())

    server = _Unix(os.fspath(where), Handler) if where else _Tcp(("127.0.0.1", port), Handler)
    threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02}).start()
    return server
