"""Messages to the service manager: the protocol of sd_notify(3) over a datagram socket.

`up -d` receives the same messages, to return when Drover is ready.
"""

import contextlib
import os
import socket
from collections.abc import Mapping

NOTIFY_SOCKET = "NOTIFY_SOCKET"
_LONGEST_STATUS = 200
_SEND_SECONDS = 0.2


class Notifier:
    """Sends states; does nothing without a socket, and ignores a receiver that is gone."""

    def __init__(self, env: Mapping[str, str]) -> None:
        address = env.get(NOTIFY_SOCKET, "")
        # A leading @ stands for the NUL of the abstract namespace.
        self._address = "\0" + address[1:] if address.startswith("@") else address
        self.watchdog_seconds = _watchdog_seconds(env) if address else None

    def ready(self, status: str) -> None:
        self._send("READY=1", _status(status))

    def status(self, text: str) -> None:
        self._send(_status(text))

    def stopping(self) -> None:
        self._send("STOPPING=1", _status("stopping: running agents may finish"))

    def alive(self) -> None:
        self._send("WATCHDOG=1")

    def _send(self, *lines: str) -> None:
        if not self._address:
            return
        with contextlib.suppress(OSError), socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as one:
            # A receiver that does not read must not stop the event loop for long.
            one.settimeout(_SEND_SECONDS)
            one.sendto("\n".join(lines).encode(), self._address)


def _status(text: str) -> str:
    return f"STATUS={' '.join(text.split())[:_LONGEST_STATUS]}"


def _watchdog_seconds(env: Mapping[str, str]) -> float | None:
    """Half of the time after which the service manager restarts a silent process; else None."""
    time, process = env.get("WATCHDOG_USEC", ""), env.get("WATCHDOG_PID", "")
    if not (time.isascii() and time.isdigit()) or (process and process != str(os.getpid())):
        return None
    return int(time) / 2_000_000 or None
