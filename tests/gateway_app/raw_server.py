"""A real gateway and a client that sends raw bytes."""

import http.client
import json
import socket
from dataclasses import dataclass
from pathlib import Path

from tests.parts.stack_part import PrivateStack


@dataclass(frozen=True)
class RawResponse:
    status: int
    headers: dict[str, str]
    body: bytes
    closed: bool

    @property
    def code(self) -> str:
        return str(json.loads(self.body)["error"]["code"])


class RawServer:
    def __init__(self, stack: PrivateStack) -> None:
        self.stack = stack
        self.pid = stack.processes["gateway"].pid
        made = stack.manage("token", "create", "test", "--scope", "admin")
        assert made.returncode == 0, made.stderr
        self.token = made.stdout.strip()

    def send_bytes(self, *pieces: bytes, seconds: float = 10) -> RawResponse:
        """Sends bytes; returns the first response, and whether the server closed the connection."""
        port = self.stack.conf.port
        with socket.create_connection(("127.0.0.1", port), seconds) as connection:
            for piece in pieces:
                try:
                    connection.sendall(piece)
                except OSError:
                    break
            return _read(connection)

    def request(self, method: str, path: str, *lines: str, body: bytes = b"") -> RawResponse:
        head = [f"{method} {path} HTTP/1.1", "Host: 127.0.0.1", "Connection: close", *lines]
        if body and not any(line.lower().startswith("transfer-encoding") for line in lines):
            head.append(f"Content-Length: {len(body)}")
        return self.send_bytes("\r\n".join(head).encode("latin-1") + b"\r\n\r\n", body)

    def written_bytes(self) -> int:
        """The bytes that the gateway has written to files and sockets, also to unnamed files."""
        lines = Path(f"/proc/{self.pid}/io").read_text().splitlines()
        return int(dict(line.split(": ") for line in lines)["wchar"])


def _read(connection: socket.socket) -> RawResponse:
    response = http.client.HTTPResponse(connection)
    try:
        response.begin()
        headers = {name.lower(): value for name, value in response.getheaders()}
        body = response.read()
    except ConnectionError:
        # A server that closes with unread data may reset the connection; the response is lost.
        return RawResponse(0, {}, b"", closed=True)
    connection.settimeout(2)
    try:
        closed = connection.recv(1) == b""
    except TimeoutError:
        closed = False
    except ConnectionError:
        closed = True
    return RawResponse(response.status, headers, body, closed)
