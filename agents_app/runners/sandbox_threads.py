"""The threads of sandboxes, which start programs with the rights of a run.

A run has a thread of its own with the rights of the sandbox. It starts the program and then lives
until the run has ended, for two reasons: a child of a thread that ends becomes a child of the main
thread, where strays are searched for, and only a thread inside the sandbox can tell whether a
process is inside, too. Afterwards it waits for a run with the same rules, of the same agent.
"""

import _thread
import contextlib
import errno
import os
import threading
import time
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache, partial
from queue import Empty, SimpleQueue
from typing import Any, TypeVar

from agents_app.runners.promises import Kernel
from agents_app.runners.restrict import SCOPES_SINCE, OpenRules, give_up_rights

T = TypeVar("T")
# As many runs can start at the same time without waiting for a new thread.
SPARE_THREADS = 4
# Threads that wait for another run of their agent; each holds about six descriptors, of which many
# systems allow a process 1,024.
IDLE_THREADS = 32


class SandboxThread:
    """A thread with the rights of one run; calls functions until it is closed."""

    __slots__ = ("_answers", "_closed", "_landlock", "_lock", "_requests", "fit")

    def __init__(self, *, landlock: int) -> None:
        self._lock = threading.Lock()
        self._closed = False
        # The rules of the thread, when it has them; None: it cannot be used for another run.
        self.fit: Fit | None = None
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
        if self.fit is not None:
            self.fit.own.close()


@dataclass(frozen=True, slots=True)
class Fit:
    """For which runs a thread can be used: those with equal rules.

    The directories of the run alone are open as long as the thread lives, so that no other
    directory can get their numbers, which are a part of the key."""

    key: tuple[Any, ...]
    own: OpenRules
    until: float


class IdleThreads:
    """Threads of ended runs, by their rules; the one that was not used for longest ends first."""

    def __init__(self, most: int = IDLE_THREADS) -> None:
        self._most = most
        self._lock = threading.Lock()
        self._threads: OrderedDict[SandboxThread, Fit] = OrderedDict()
        self._by_key: dict[tuple[Any, ...], list[SandboxThread]] = {}

    def take(self, key: tuple[Any, ...]) -> SandboxThread | None:
        with self._lock:
            threads = self._by_key.get(key)
            if not threads:
                return None
            thread = threads[-1]
            fit = self._forget(thread)
        if fit.until > time.monotonic():
            return thread
        thread.close()
        return None

    def give(self, thread: SandboxThread) -> None:
        """Keep the thread of an ended run, none of whose processes is alive, or end it."""
        fit = thread.fit
        if fit is None or fit.until <= time.monotonic():
            thread.close()
            return
        surplus = None
        with self._lock:
            self._threads[thread] = fit
            self._by_key.setdefault(fit.key, []).append(thread)
            if len(self._threads) > self._most:
                surplus = next(iter(self._threads))
                self._forget(surplus)
        if surplus is not None:
            surplus.close()

    def _forget(self, thread: SandboxThread) -> Fit:
        fit = self._threads.pop(thread)
        threads = self._by_key[fit.key]
        threads.remove(thread)
        if not threads:
            del self._by_key[fit.key]
        return fit


IDLE = IdleThreads()
os.register_at_fork(after_in_child=IDLE.__init__)  # type: ignore[misc]


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

    def refill(self, prepare: Callable[[], None]) -> None:
        """Have a thread made for a later run while no run waits for it, and call `prepare` then."""
        if self._spare.qsize() < SPARE_THREADS:
            self._requests.put(partial(self._keep, prepare))

    def _keep(self, prepare: Callable[[], None], made: SandboxThread | Exception) -> None:
        if isinstance(made, SandboxThread):
            self._spare.put(made)
            prepare()

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
