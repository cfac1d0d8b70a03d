"""What the sandbox of a run promises, and which promises the kernel of this host keeps."""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from functools import lru_cache

from agents_app.runners.restrict import SCOPES_SINCE, has_system_call_filter, landlock_version

# How a run was confined, as stored with the run; promises that did not hold follow `on`.
OFF, ON, NONE = "off", "on", "none"


class Promise(StrEnum):
    FILES = "files"
    TRUNCATION = "truncation"
    PROCESSES = "processes"
    SIGNALS = "signals"
    RESOURCES = "resources"


MEANINGS: Mapping[Promise, str] = {
    Promise.FILES: "a run reads, writes and executes only the files of its sandbox",
    Promise.TRUNCATION: "a run cannot empty files outside its sandbox",
    Promise.PROCESSES: "a run cannot read the memory and the environment of other processes",
    Promise.SIGNALS: "a run cannot signal processes outside, nor use their abstract sockets",
    Promise.RESOURCES: "a run cannot change limits and priorities of others, nor trace processes",
}


@dataclass(frozen=True, slots=True)
class Kernel:
    """What this kernel can do for a sandbox."""

    landlock: int
    filters_calls: bool

    @property
    def missing(self) -> tuple[Promise, ...]:
        held = {
            Promise.FILES: self.landlock >= 1,
            Promise.TRUNCATION: self.landlock >= 3,
            Promise.PROCESSES: self.landlock >= 1,
            Promise.SIGNALS: self.landlock >= SCOPES_SINCE,
            Promise.RESOURCES: self.filters_calls,
        }
        return tuple(promise for promise, holds in held.items() if not holds)

    @property
    def summary(self) -> str:
        """`on`, with the promises that do not hold; `none` if the kernel can do nothing."""
        if not self.landlock and not self.filters_calls:
            return NONE
        return " ".join([ON, *(f"-{promise}" for promise in self.missing)])


@lru_cache(maxsize=1)
def this_kernel() -> Kernel:
    return Kernel(landlock_version(), has_system_call_filter())


def missing_promises(summary: str) -> tuple[Promise, ...]:
    """The promises that did not hold for a run, from the text that is stored with it."""
    if summary in (OFF, NONE):
        return tuple(Promise)
    words = summary.split()[1:]
    return tuple(promise for promise in Promise if f"-{promise}" in words)
