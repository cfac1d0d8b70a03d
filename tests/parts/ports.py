"""Free TCP ports on the loopback interface."""

import socket


def free_port() -> int:
    """A port that was free a moment ago; the kernel does not hand it out again soon."""
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        port: int = listener.getsockname()[1]
        return port
