"""Starts programs in the sandbox of a run: the rules of its files, in a thread that has them."""

import contextlib
import os
import threading
import time
from collections.abc import Callable
from functools import partial
from typing import Any, TypeVar

from agents_app.runners.base import CannotSpawn, Sandbox
from agents_app.runners.promises import NONE, Kernel, this_kernel
from agents_app.runners.restrict import OpenRules, add_rules, new_ruleset, restrict_files
from agents_app.runners.sandbox_threads import IDLE, Fit, SandboxThread, spare_threads

T = TypeVar("T")
# After this time a directory that was replaced is opened again.
KEEP_SECONDS = 30


def start_in_sandbox(
    sandbox: Sandbox, act: Callable[[], T], *, drop_capabilities: bool, kernel: Kernel | None = None
) -> tuple[SandboxThread | None, T]:
    """Call the function, which starts a program, in a thread with the rights of the sandbox.

    None instead of the thread if this kernel cannot restrict anything."""
    kernel = kernel or this_kernel()
    refuse_missing_promises(sandbox, kernel)
    if kernel.summary == NONE:
        return None, act()
    key = _key_of(sandbox, kernel, drop_capabilities)
    idle = IDLE.take(key)
    if idle is not None:
        return idle, _call(idle, act)
    spare = spare_threads(kernel, drop_capabilities=drop_capabilities)
    shared = SHARED_RULES.of(sandbox.read, sandbox.write, kernel.landlock)
    own = OpenRules(sandbox.own_read, sandbox.own_write, kernel.landlock)
    try:
        ruleset = _ruleset_of(own, shared, kernel.landlock)
        try:
            thread = spare.take()
            thread.fit = Fit(key, own, shared.until)
            # In one call, because each call costs two switches between threads.
            return thread, _call(thread, partial(_restrict_and_act, ruleset, act))
        finally:
            spare.refill(shared.prepare)
            if ruleset >= 0:
                os.close(ruleset)
    except BaseException:
        own.close()
        raise


def _call(thread: SandboxThread, act: Callable[[], T]) -> T:
    try:
        return thread.call(act)
    except BaseException:
        thread.close()
        raise


def _restrict_and_act(ruleset: int, act: Callable[[], T]) -> T:
    if ruleset >= 0:
        restrict_files(ruleset)
    return act()


def _key_of(sandbox: Sandbox, kernel: Kernel, drop_capabilities: bool) -> tuple[Any, ...]:
    """Equal for runs whose sandboxes are equal; directories by their numbers, because a directory
    that was replaced has another one."""
    own = tuple(map(_number_of, (*sandbox.own_read, "", *sandbox.own_write)))
    return sandbox.read, sandbox.write, own, kernel, drop_capabilities


def _number_of(path: str) -> tuple[int, int] | None:
    try:
        status = os.stat(path)  # noqa: PTH116
    except OSError:
        return None
    return status.st_dev, status.st_ino


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


def _ruleset_of(own: OpenRules, shared: SharedRules, version: int) -> int:
    """A ruleset with the shared rules and those of the run alone; -1 without Landlock."""
    if not version:
        return -1
    ruleset = shared.ruleset()
    try:
        add_rules(ruleset, own)
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
