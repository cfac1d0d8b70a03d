"""The sandbox of runs on this host: what the kernel promises, and the thread that starts programs.

A run has a thread of its own with the rights of the sandbox. It starts the program and then lives
until the run has ended, for two reasons: a child of a thread that ends becomes a child of the main
thread, where strays are searched for, and only a thread inside the sandbox can tell whether a
process is inside, too.
"""

import _thread
import contextlib
import errno
import os
import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from enum import StrEnum
from functools import cache, lru_cache, partial
from queue import Empty, SimpleQueue
from typing import Any, TypeVar

from agents_app.runners.base import CannotSpawn, Sandbox
from agents_app.runners.restrict import (
    SCOPES_SINCE,
    OpenRules,
    add_rules,
    give_up_rights,
    has_system_call_filter,
    landlock_version,
    new_ruleset,
    restrict_files,
)

T = TypeVar("T")
# After this time a directory that was replaced is opened again.
KEEP_SECONDS = 30
# As many runs can start at the same time without waiting for a new thread.
SPARE_THREADS = 4
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


# --- the thread -----------------------------------------------------------------------------


class SandboxThread:
    """A thread with the rights of one run; calls functions until it is closed."""

    __slots__ = ("_answers", "_closed", "_landlock", "_lock", "_requests")

    def __init__(self, *, landlock: int) -> None:
        self._lock = threading.Lock()
        self._closed = False
        self._landlock = landlock
        self._requests: SimpleQueue[Callable[[], Any] | None] = SimpleQueue()
        self._answers: SimpleQueue[Any] = SimpleQueue()
        _start_thread(_serve, self._requests, self._answers)

    def call(self, act: Callable[[], T]) -> T:
        """The result of the function, called with the rights of the sandbox."""
        with self._lock:
            if self._closed:
                raise RuntimeError("the thread of this sandbox has ended")
            self._requests.put(act)
            answer = self._answers.get()
        if isinstance(answer, _Failure):
            raise answer.error
        result: T = answer
        return result

    def contains(self, pid: int) -> bool:
        """Whether the process is inside this sandbox; False after `close`, and without Landlock,
        where the thread reaches all processes of its user."""
        if not self._landlock:
            return False
        try:
            return self.call(partial(_reaches, pid, scoped=self._landlock >= SCOPES_SINCE))
        except RuntimeError:
            return False

    def close(self) -> None:
        with self._lock:
            if not self._closed:
                self._closed = True
                self._requests.put(None)


@dataclass(frozen=True, slots=True)
class _Failure:
    error: BaseException


def _start_thread(function: Callable[..., None], *arguments: object) -> None:
    try:
        _thread.start_new_thread(function, arguments)
    except RuntimeError:  # the answer of Python to each error of the system
        raise OSError(errno.EAGAIN, os.strerror(errno.EAGAIN)) from None


def _serve(requests: "SimpleQueue[Callable[[], Any] | None]", answers: "SimpleQueue[Any]") -> None:
    while (act := requests.get()) is not None:
        try:
            answers.put(act())
        except BaseException as error:
            answers.put(_Failure(error))
        del act  # may hold descriptors, and the next request may be hours away


def _reaches(pid: int, *, scoped: bool) -> bool:
    """Both calls are refused for a process outside. A signal reaches also a process that hides
    its memory, but only newer kernels confine signals."""
    try:
        if scoped:
            os.kill(pid, 0)
        else:
            os.readlink(f"/proc/{pid}/exe")  # noqa: PTH115
    except OSError:
        return False
    return True


class SpareThreads:
    """Threads that have everything of a sandbox but its files, made before runs need them.

    A thread inherits the restrictions of the thread that starts it. So one thread, which makes
    the others, gives up its rights once, and no run waits for that.

    The process must not change its user (os.setuid): glibc changes that of all threads, and aborts
    the process if one of them is not allowed to."""

    def __init__(self, kernel: Kernel, *, drop_capabilities: bool) -> None:
        self._kernel = kernel
        self._drop_capabilities = drop_capabilities
        # Each request is the function that takes the thread, or the reason why there is none.
        self._requests: SimpleQueue[Callable[[SandboxThread | Exception], None]] = SimpleQueue()
        self._spare: SimpleQueue[SandboxThread] = SimpleQueue()
        _start_thread(self._make)

    def take(self) -> SandboxThread:
        """OSError if the kernel refuses the restrictions or a thread. Call `refill` later."""
        with contextlib.suppress(Empty):
            return self._spare.get_nowait()
        answer: SimpleQueue[SandboxThread | Exception] = SimpleQueue()
        self._requests.put(answer.put)
        made = answer.get()
        if isinstance(made, Exception):
            raise made
        return made

    def refill(self, rules: "SharedRules") -> None:
        """Have a thread and a ruleset made for a later run, while no run waits for them."""
        if self._spare.qsize() < SPARE_THREADS:
            self._requests.put(partial(self._keep, rules))

    def _keep(self, rules: "SharedRules", made: SandboxThread | Exception) -> None:
        if isinstance(made, SandboxThread):
            self._spare.put(made)
            rules.prepare()

    def _make(self) -> None:
        has_rights = True
        while True:
            answer = self._requests.get()
            try:
                if has_rights:
                    give_up_rights(
                        filter_calls=self._kernel.filters_calls,
                        drop_capabilities=self._drop_capabilities,
                    )
                    has_rights = False
                answer(SandboxThread(landlock=self._kernel.landlock))
            except Exception as error:  # this thread must live: every run waits for its answer
                answer(error)
            del answer  # may hold descriptors, and the next request may be hours away


@cache
def spare_threads(kernel: Kernel, *, drop_capabilities: bool) -> SpareThreads:
    """A run as another user drops its capabilities later, so there are two kinds."""
    return SpareThreads(kernel, drop_capabilities=drop_capabilities)


# Threads do not survive a fork.
os.register_at_fork(after_in_child=spare_threads.cache_clear)


def start_in_sandbox(
    sandbox: Sandbox, act: Callable[[], T], *, drop_capabilities: bool, kernel: Kernel | None = None
) -> tuple[SandboxThread | None, T]:
    """Call the function, which starts a program, in a thread with the rights of the sandbox.

    None instead of the thread if this kernel cannot restrict anything."""
    kernel = kernel or this_kernel()
    refuse_missing_promises(sandbox, kernel)
    if kernel.summary == NONE:
        return None, act()
    spare = spare_threads(kernel, drop_capabilities=drop_capabilities)
    shared = SHARED_RULES.of(sandbox.read, sandbox.write, kernel.landlock)
    ruleset = _ruleset_of(sandbox, shared, kernel.landlock)

    def restrict_and_act() -> T:
        if kernel.landlock:
            restrict_files(ruleset)
        return act()

    try:
        thread = spare.take()
        try:
            # In one call, because each call costs two switches between threads.
            return thread, thread.call(restrict_and_act)
        except BaseException:
            thread.close()
            raise
        finally:
            spare.refill(shared)
    finally:
        if ruleset >= 0:
            os.close(ruleset)


# --- its rules ------------------------------------------------------------------------------


class SharedRules:
    """Rules that many runs share. Their paths are kept open for a while, and a ruleset that has
    them is built in advance, because both cost more than the rest of a sandbox."""

    def __init__(self, read: tuple[str, ...], write: tuple[str, ...], version: int) -> None:
        self._rulesets: list[int] = []
        self._rules = OpenRules(read, write, version)
        self._version = version
        self.until = time.monotonic() + KEEP_SECONDS

    def ruleset(self) -> int:
        """A ruleset with these rules, which the caller closes."""
        with contextlib.suppress(IndexError):
            return self._rulesets.pop()
        return new_ruleset(self._version, self._rules)

    def prepare(self) -> None:
        if self._version and not self._rulesets:
            self._rulesets.append(new_ruleset(self._version, self._rules))

    def __del__(self, close: Callable[[int], None] = os.close) -> None:
        """`close` is bound here: modules are emptied before the last objects when Python exits."""
        while self._rulesets:
            close(self._rulesets.pop())


class SharedRulesByPaths:
    """Few, because each holds about thirty descriptors."""

    def __init__(self, most: int = 8) -> None:
        self._most = most
        self._lock = threading.Lock()
        self._kept: dict[tuple[Any, ...], SharedRules] = {}

    def of(self, read: tuple[str, ...], write: tuple[str, ...], version: int) -> SharedRules:
        key = (read, write, version)
        with self._lock:
            rules = self._kept.pop(key, None)
            if rules is None or rules.until < time.monotonic():
                rules = SharedRules(read, write, version)
            # As the last one; the first one was not used for the longest time.
            self._kept[key] = rules
            if len(self._kept) > self._most:
                del self._kept[next(iter(self._kept))]
            return rules


SHARED_RULES = SharedRulesByPaths()


def _ruleset_of(sandbox: Sandbox, shared: SharedRules, version: int) -> int:
    """A ruleset with the shared rules and those of the run alone; -1 without Landlock."""
    if not version:
        return -1
    ruleset = shared.ruleset()
    try:
        own = OpenRules(sandbox.own_read, sandbox.own_write, version)
        try:
            add_rules(ruleset, own)
        finally:
            own.close()
    except BaseException:
        os.close(ruleset)
        raise
    return ruleset


def refuse_missing_promises(sandbox: Sandbox, kernel: Kernel) -> None:
    """Raises CannotSpawn if the agent requires promises that this kernel does not keep."""
    if sandbox.required and kernel.missing:
        raise CannotSpawn(
            f"sandbox_unavailable: this kernel does not keep: {', '.join(kernel.missing)} "
            f"(Landlock {kernel.landlock}); use Linux 6.12 or newer, or write `sandbox: auto`"
        )
