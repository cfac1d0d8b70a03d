"""Runs one role: starts it, waits until it is ready, and restarts it with a growing delay."""

import asyncio
import signal
import time

from agents_app.errors import DroverError
from agents_app.stack.backoff import failures_after, restart_delay_seconds
from agents_app.stack.child import SupervisedProcess, start_child
from agents_app.stack.console import Console
from agents_app.stack.role import Role

FIRST_TRIES = 3
READY_WITHIN_SECONDS = 60.0
_READY_CHECK_SECONDS = 0.05


class StartError(DroverError):
    """A role never became ready."""

    code = "start_failed"


class RoleProcess:
    """Keeps one role running until `release` is called."""

    def __init__(self, role: Role, console: Console, keep_fds: tuple[int, ...]) -> None:
        self.role = role
        self._console = console
        self._keep_fds = keep_fds
        self._child: SupervisedProcess | None = None
        self._task: asyncio.Task[None] | None = None
        self._was_ready = asyncio.Event()

    def start(self) -> None:
        self._task = asyncio.create_task(self._run_until_released())

    def release(self) -> SupervisedProcess | None:
        """Stop restarting the role; returns its child process, which the caller must stop."""
        if self._task is not None:
            self._task.cancel()
        return self._child

    async def until_ready(self) -> None:
        """Wait until the role is ready; raises StartError if it never is."""
        assert self._task is not None
        ready = asyncio.create_task(self._was_ready.wait())
        try:
            await asyncio.wait({ready, self._task}, return_when=asyncio.FIRST_COMPLETED)
        finally:
            ready.cancel()
        if self._task.done():
            self._task.result()

    async def until_exited(self) -> None:
        """Wait for the exit of a role without restarts; a role with restarts never exits."""
        assert self._task is not None
        await asyncio.wait({self._task})

    async def _run_until_released(self) -> None:
        failures = 0
        while True:
            started = time.monotonic()
            exit_text = await self._run_once()
            failures = failures_after(failures, time.monotonic() - started)
            if not self._was_ready.is_set() and (failures >= FIRST_TRIES or not self.role.restart):
                raise StartError(self._start_problem(exit_text))
            if not self.role.restart:
                self._console.say(f"{self.role.name} {exit_text}")
                return
            delay = restart_delay_seconds(failures)
            self._console.say(f"{self.role.name} {exit_text}; next start in {delay:g} s")
            await asyncio.sleep(delay)

    async def _run_once(self) -> str:
        """Start the process and wait for its exit; returns a text about the exit."""
        if self.role.ready_file is not None:
            self.role.ready_file.unlink(missing_ok=True)
        try:
            self._child = await start_child(self.role, self._console.line, self._keep_fds)
        except OSError as error:
            return f"cannot be run ({self.role.argv[0]}: {error.strerror})"
        return describe_exit(await self._watch(self._child))

    async def _watch(self, child: SupervisedProcess) -> int:
        """Wait for the exit, and meanwhile set the ready event; returns the exit status."""
        exited = asyncio.create_task(child.exited())
        ready = asyncio.create_task(self._wait_until_ready(child))
        try:
            done, _ = await asyncio.wait({exited, ready}, return_when=asyncio.FIRST_COMPLETED)
            if ready in done:
                ready.result()
            return await exited
        finally:
            ready.cancel()
            exited.cancel()

    async def _wait_until_ready(self, child: SupervisedProcess) -> None:
        try:
            async with asyncio.timeout(READY_WITHIN_SECONDS):
                while not await self._is_ready():
                    await asyncio.sleep(_READY_CHECK_SECONDS)
        except TimeoutError:
            if self._was_ready.is_set():
                return
            raise StartError(self._start_problem(f"waited {READY_WITHIN_SECONDS:g} s")) from None
        child.muted = False
        self._was_ready.set()

    async def _is_ready(self) -> bool:
        if self.role.ready_file is not None:
            return self.role.ready_file.exists()
        return self.role.ready is None or await self.role.ready()

    def _start_problem(self, reason: str) -> str:
        lines = self._child.last_lines if self._child else ()
        output = "".join(f"\n    {line}" for line in lines) or " (none)"
        return f"{self.role.name} {reason} and was never ready. Its last lines:{output}"


def describe_exit(status: int) -> str:
    if status >= 0:
        return f"exited with status {status}"
    try:
        return f"was killed by {signal.Signals(-status).name}"
    except ValueError:
        return f"was killed by signal {-status}"
