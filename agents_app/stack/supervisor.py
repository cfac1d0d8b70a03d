"""Starts roles in order, restarts them, and stops them in order; independent of agents and runs."""

import asyncio
import contextlib
import signal
import threading
from collections.abc import AsyncIterator, Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import Any, TypeVar, cast

from agents_app.installation import DRAIN_SIGNAL
from agents_app.stack.child import SupervisedProcess, watch_children_without_threads
from agents_app.stack.console import Console
from agents_app.stack.role import Role
from agents_app.stack.role_process import RoleProcess, StartError

T = TypeVar("T")
STOP_SIGNALS = frozenset({signal.SIGINT, signal.SIGTERM, signal.SIGHUP})
HANDLED_SIGNALS = STOP_SIGNALS | {DRAIN_SIGNAL}
# Seconds between the kill signal of a role and SIGKILL.
_KILL_SECONDS = 5.0
# A stop waits so long until its state is recorded: the database may be away.
_RECORD_SECONDS = 10.0


def _no_runs() -> int:
    return 0


def _nothing() -> None:
    return None


def _ignore_names(_names: Sequence[str]) -> None:
    return None


@dataclass(frozen=True, slots=True, kw_only=True)
class Callbacks:
    """Functions of the caller; all but those named `on_` may block and run on a thread."""

    on_ready: Callable[[], None] = _nothing
    # Called with the names of the processes that are started together, and at the first stop.
    on_starting: Callable[[Sequence[str]], None] = _ignore_names
    on_stopping: Callable[[], None] = _nothing
    # Called every `alive_seconds` while the event loop works.
    on_alive: Callable[[], None] = _nothing
    alive_seconds: float | None = None
    # The number of running runs, and a function that stops them.
    running: Callable[[], int] = _no_runs
    interrupt: Callable[[], None] = _nothing
    # Record the state: before the first process is stopped, and after the exit of the last.
    record_draining: Callable[[], None] = _nothing
    record_stopped: Callable[[], None] = _nothing


class Supervisor:
    def __init__(
        self,
        roles: Sequence[Role],
        console: Console,
        callbacks: Callbacks | None = None,
        *,
        keep_fds: tuple[int, ...] = (),
        grace_seconds: float = 10.0,
        progress_seconds: float = 5.0,
    ) -> None:
        self._console = console
        self._callbacks = callbacks or Callbacks()
        self._processes = [RoleProcess(role, console, keep_fds) for role in roles]
        self._grace_seconds = grace_seconds
        self._progress_seconds = progress_seconds
        self._stop_requests = 0
        self._stop_requested = asyncio.Event()
        self._interrupt_requested = asyncio.Event()
        self._kill_requested = asyncio.Event()
        self._interrupting: asyncio.Task[None] | None = None
        self._killed: list[str] = []
        # One thread at a time: the states are recorded in their order.
        self._recording = threading.Lock()

    async def run(self) -> int:
        """Run until a stop is requested; returns the exit code."""
        watch_children_without_threads()
        failure: StartError | None = None
        with self._stop_signals(), self._alive():
            try:
                await self._start_and_watch()
            except StartError as error:
                failure = error
                self._console.say(str(error))
            self._callbacks.on_stopping()
            await self._drain(began=failure is None)
        return 1 if failure or self._killed else 0

    def request_stop(self) -> None:
        """First request: drain. Second: stop running runs. Third: kill."""
        self._stop_requests += 1
        if self._stop_requests == 1:
            self._console.say("draining; press Ctrl-C again to stop running agents")
            self._stop_requested.set()
        elif self._stop_requests == 2:
            self._console.say("stopping running agents; press Ctrl-C again to kill them")
            self._interrupt_requested.set()
        else:
            self._kill_requested.set()

    def request_drain(self) -> None:
        """The first stop request; does nothing after another one, so that it ends no run."""
        if self._stop_requests == 0:
            self.request_stop()

    @contextlib.contextmanager
    def _stop_signals(self) -> Iterator[None]:
        loop = asyncio.get_running_loop()
        # Under nohup SIGHUP is ignored and must stay so.
        caught = {each for each in HANDLED_SIGNALS if signal.getsignal(each) != signal.SIG_IGN}
        for signum in caught:
            drains = signum == DRAIN_SIGNAL
            loop.add_signal_handler(signum, self.request_drain if drains else self.request_stop)
        # `up` blocks these signals until here; children must not inherit the mask.
        signal.pthread_sigmask(signal.SIG_UNBLOCK, HANDLED_SIGNALS)
        try:
            yield
        finally:
            for signum in caught:
                loop.remove_signal_handler(signum)

    @contextlib.contextmanager
    def _alive(self) -> Iterator[None]:
        """Report to the caller from the event loop, until the last process has exited."""
        seconds = self._callbacks.alive_seconds

        async def report() -> None:
            while seconds:
                self._callbacks.on_alive()
                await asyncio.sleep(seconds)

        task = asyncio.create_task(report())
        try:
            yield
        finally:
            task.cancel()

    async def _start_and_watch(self) -> None:
        for stage in _stages(self._processes, lambda process: process.role.start_stage):
            self._callbacks.on_starting([process.role.name for process in stage])
            for process in stage:
                process.start()
            if not await self._until_stop_or(asyncio.gather(*(k.until_ready() for k in stage))):
                return
        self._callbacks.on_ready()
        await self._until_stop_or(
            asyncio.gather(*(each.until_exited() for each in self._processes))
        )

    async def _until_stop_or(self, work: asyncio.Future[list[None]]) -> bool:
        """True when the work is done, False if a stop was requested first; raises its errors."""
        stop = asyncio.create_task(self._stop_requested.wait())
        try:
            either: set[asyncio.Future[Any]] = {work, stop}
            await asyncio.wait(either, return_when=asyncio.FIRST_COMPLETED)
            if not work.done():
                return False
            work.result()
            return True
        finally:
            stop.cancel()
            work.cancel()
            await asyncio.gather(work, return_exceptions=True)

    async def _drain(self, *, began: bool) -> None:
        """Stop all processes; a start that failed is not recorded as a drain."""
        if began:
            await self._record("draining", self._callbacks.record_draining)
        for stage in _stages(self._processes, lambda process: process.role.stop_stage):
            async with self._progress(stage):
                await asyncio.gather(*(self._stop(process) for process in stage))
        if self._interrupting is not None:
            await asyncio.wait({self._interrupting}, timeout=_RECORD_SECONDS)
        if self._killed:
            self._console.say(f"killed: {', '.join(self._killed)}")
        await self._record("stopped", self._callbacks.record_stopped)
        self._console.say("stopped")

    async def _record(self, state: str, record: Callable[[], None]) -> None:
        """Record the state on a thread; an error or a slow database must not prevent the stop."""

        def attempt() -> None:
            with self._recording:
                try:
                    record()
                except Exception as error:
                    self._console.say(f"could not record the state {state}: {error}")

        recorded = _call_in_daemon_thread(attempt)
        # A second Ctrl-C does not wait for the state of the first.
        urgent = asyncio.create_task(self._interrupt_requested.wait())
        waits: set[asyncio.Future[Any]] = {recorded} if state == "stopped" else {recorded, urgent}
        await asyncio.wait(waits, timeout=_RECORD_SECONDS, return_when=asyncio.FIRST_COMPLETED)
        urgent.cancel()

    async def _stop(self, process: RoleProcess) -> None:
        child = process.release()
        if child is None or not child.alive:
            return
        child.signal(child.role.stop_signal)
        if not await self._stops_in_time(child):
            self._killed.append(child.role.name)
            await _kill(child)

    async def _stops_in_time(self, child: SupervisedProcess) -> bool:
        timeout = child.role.stop_timeout_seconds
        if timeout is not None:
            return await _exits_before(child, self._kill_requested, timeout)
        if await _exits_before(child, self._interrupt_requested, None):
            return True
        self._interrupt_once()
        return await _exits_before(child, self._kill_requested, self._grace_seconds)

    def _interrupt_once(self) -> None:
        if self._interrupting is None:
            self._interrupting = asyncio.create_task(self._interrupt())

    async def _interrupt(self) -> None:
        try:
            await _call_in_daemon_thread(self._callbacks.interrupt)
        except Exception as error:
            # The kill after the grace period ends the runs in any case.
            self._console.say(f"could not request the stop of the runs: {error}")

    @contextlib.asynccontextmanager
    async def _progress(self, stage: Sequence[RoleProcess]) -> AsyncIterator[None]:
        drains = any(process.role.stop_timeout_seconds is None for process in stage)
        task = asyncio.create_task(self._report_progress()) if drains else None
        try:
            yield
        finally:
            if task is not None:
                task.cancel()

    async def _report_progress(self) -> None:
        while True:
            await asyncio.sleep(self._progress_seconds)
            self._console.say(f"waiting for {await self._running_text()} to finish")

    async def _running_text(self) -> str:
        try:
            count = await _call_in_daemon_thread(self._callbacks.running)
        except Exception:
            # An unreachable database must not prevent the stop.
            return "the workers"
        return "1 run" if count == 1 else f"{count} runs"


def _call_in_daemon_thread(call: Callable[[], T]) -> asyncio.Future[T]:
    """Like asyncio.to_thread, but the exit of the process does not wait for a call that hangs."""
    loop = asyncio.get_running_loop()
    future: asyncio.Future[T] = loop.create_future()

    def set_result(result: T | None, error: Exception | None) -> None:
        if future.cancelled():
            return
        if error is not None:
            future.set_exception(error)
        else:
            future.set_result(cast("T", result))

    def attempt() -> None:
        result, failure = None, None
        try:
            result = call()
        except Exception as error:
            failure = error
        with contextlib.suppress(RuntimeError):  # the loop was closed without this result
            loop.call_soon_threadsafe(set_result, result, failure)

    threading.Thread(target=attempt, name="database", daemon=True).start()
    return future


def _stages(
    processes: Iterable[RoleProcess], key: Callable[[RoleProcess], int]
) -> list[list[RoleProcess]]:
    return [list(stage) for _, stage in groupby(sorted(processes, key=key), key)]


async def _exits_before(
    child: SupervisedProcess, event: asyncio.Event, seconds: float | None
) -> bool:
    """Whether the child exits before the event and within the time."""
    waits = {asyncio.create_task(child.exited()), asyncio.create_task(event.wait())}
    await asyncio.wait(waits, timeout=seconds, return_when=asyncio.FIRST_COMPLETED)
    for wait in waits:
        wait.cancel()
    return not child.alive


async def _kill(child: SupervisedProcess) -> None:
    child.signal(child.role.kill_signal)
    try:
        await asyncio.wait_for(child.exited(), _KILL_SECONDS)
    except TimeoutError:
        child.signal(signal.SIGKILL)
        await child.exited()
