"""A network namespace, which has a network of its own like another machine, and its cable."""

import os
import secrets
import subprocess
from collections.abc import Sequence

from tests.parts.missing import missing


class RemoteHost:
    """Processes in the namespace reach this machine at `address`, while the cable is plugged in."""

    def __init__(self) -> None:
        mark = secrets.token_bytes(3)
        self.name = f"drover-{mark.hex()}"
        self._interface = f"dr{mark.hex()}"
        # Of the addresses that are set apart for tests of networks; the last two bits are those of
        # the ends.
        network = f"198.18.{mark[0]}.{mark[1] & 0b11111100}".rpartition(".")
        self.address, self.own_address = (f"{network[0]}.{int(network[2]) + end}" for end in (1, 2))

    def __enter__(self) -> "RemoteHost":
        added = ["ip", "netns", "add", self.name]
        if os.getuid() != 0 or subprocess.run(added, capture_output=True, check=False).returncode:
            missing("leave to make network namespaces with ip", "run the tests as root")
        inner = f"{self._interface}i"
        _ip("link", "add", self._interface, "type", "veth", "peer", inner, "netns", self.name)
        for end, name in ((("-n", self.name), inner), ((), self._interface)):
            own = self.own_address if end else self.address
            _ip(*end, "address", "add", f"{own}/30", "dev", name)
            _ip(*end, "link", "set", name, "up")
        _ip("-n", self.name, "link", "set", "lo", "up")
        return self

    def __exit__(self, *_: object) -> None:
        """With the namespace its end of the cable is deleted, and with that the other end."""
        _ip("netns", "delete", self.name)

    def argv(self, argv: Sequence[str]) -> list[str]:
        """The command that executes another one in the namespace, in the same process."""
        return ["ip", "netns", "exec", self.name, *argv]

    def unplug(self) -> None:
        """Connections stay open, and neither end is told that its packets do not arrive."""
        _ip("link", "set", self._interface, "down")

    def plug_in(self) -> None:
        _ip("link", "set", self._interface, "up")


def _ip(*arguments: str) -> None:
    subprocess.run(["ip", *arguments], check=True, capture_output=True)
