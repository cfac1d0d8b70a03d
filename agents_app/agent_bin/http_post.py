"""Sends one form with POST for the script `drover` where there is no curl; standard library only.

Prints the answer, a newline and the status; its exit codes are those of curl. It runs with the
Python of the agent's machine or image, which may be older than that of Drover.
"""

from __future__ import annotations

import http.client
import os
import socket
import sys
from urllib.parse import urlencode, urlsplit

NOT_RESOLVED, NOT_CONNECTED, TIMED_OUT, BROKEN = 6, 7, 28, 56


class UnixConnection(http.client.HTTPConnection):
    def __init__(self, path: str, timeout: float) -> None:
        super().__init__("localhost", timeout=timeout)
        self._path = path

    def connect(self) -> None:
        self.sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self.sock.settimeout(self.timeout)
        self.sock.connect(self._path)


def connect(url: str, unix_socket: str, seconds: float) -> http.client.HTTPConnection:
    parts = urlsplit(url)
    if unix_socket:
        connection: http.client.HTTPConnection = UnixConnection(unix_socket, seconds)
    elif parts.scheme == "https":
        connection = http.client.HTTPSConnection(parts.netloc, timeout=seconds)
    else:
        connection = http.client.HTTPConnection(parts.netloc, timeout=seconds)
    connection.connect()
    return connection


def post(connection: http.client.HTTPConnection, url: str, form: str) -> tuple[bytes, int]:
    headers = {
        "Authorization": "Bearer " + os.environ.get("DROVER_RUN_TOKEN", ""),
        "Content-Type": "application/x-www-form-urlencoded",
        "Connection": "close",
    }
    connection.request("POST", urlsplit(url).path, form.encode("ascii"), headers)
    response = connection.getresponse()
    return response.read(), response.status


def main(url: str, unix_socket: str, text_field: str, seconds: str, *fields: str) -> int:
    pairs = [os.fsencode(field).split(b"=", 1) for field in fields]
    if text_field:
        pairs.append([os.fsencode(text_field), sys.stdin.buffer.read()])
    try:
        connection = connect(url, unix_socket, float(seconds))
    except socket.gaierror:
        return NOT_RESOLVED
    except OSError:
        return NOT_CONNECTED
    try:
        body, status = post(connection, url, urlencode([(name, value) for name, value in pairs]))
    except socket.timeout:  # noqa: UP041 - another one than TimeoutError before Python 3.10
        return TIMED_OUT
    except (OSError, http.client.HTTPException):
        return BROKEN
    sys.stdout.buffer.write(b"%s\n%d" % (body, status))
    return 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
