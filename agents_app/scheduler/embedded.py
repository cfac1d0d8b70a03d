"""The class that programs import as `Scheduler`."""

import threading
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from agents_app.errors import SchedulerError, SchedulerShutdownError
from agents_app.scheduler.setup import open_state
from agents_app.scheduler.values import (
    AgentScheduleInfo,
    SchedulerLogger,
    SchedulerOptions,
    SchedulerState,
    SchedulerStatus,
    SchedulerTriggerCallback,
    State,
    StopOptions,
)

if TYPE_CHECKING:
    from agents_app.scheduler.engine import SchedulerEngine

Agents = str | Path | Iterable[Mapping[str, Any]]


class EmbeddedScheduler:
    """Drover's engine in this process: rows, due times and dispatch on SQLite or PostgreSQL.

    Needs no Redis. Runs are executed by a worker process that is a child of this process, or by
    `on_trigger` on threads of this process. A process can have one running scheduler."""

    def __init__(
        self,
        *,
        state: State = None,
        check_interval: float = 1.0,
        logger: SchedulerLogger | None = None,
        on_trigger: SchedulerTriggerCallback | None = None,
    ) -> None:
        self.options = SchedulerOptions(
            state=state, check_interval=check_interval, logger=logger, on_trigger=on_trigger
        )
        self._lock = threading.RLock()
        self._engine: SchedulerEngine | None = None
        self._status: SchedulerStatus = "stopped"

    # --- life ---------------------------------------------------------------------------------

    def start(self, agents: Agents) -> None:
        """Write the agents to the state and begin to fire their schedules, on another thread.

        `agents` are tables with the fields of SKILL.md and `name` and `instructions`, or a project
        directory. Agents of the state that are not given are disabled; their history stays."""
        with self._lock:
            if self._status != "stopped":
                raise SchedulerError(f"the scheduler is {self._status}: stop it before it starts")
            operations = open_state(self.options.state)
            self._engine = operations.start_engine(agents, self.options)
            self._status = "running"

    def stop(self, wait_for_jobs: bool = True, timeout: float = 30.0) -> None:
        """Start no further runs and wait for the running ones; queued work stays queued.

        Raises SchedulerShutdownError if runs are unfinished after `timeout` seconds; these runs go
        on, and so do those of a stop that does not wait. A stopped scheduler stays as it is."""
        options = StopOptions(wait_for_jobs=wait_for_jobs, timeout=timeout)
        with self._lock:
            if self._engine is None or self._status != "running":
                return
            engine = self._engine
            self._status = "stopping"
            try:
                engine.drain()
                finished = engine.wait(options.timeout if options.wait_for_jobs else 0)
                count = 0 if finished else sum(engine.running_counts().values())
            finally:
                self._status = "stopped"
                open_state(self.options.state).forget_engine(engine)
        if options.wait_for_jobs and not finished:
            raise SchedulerShutdownError(
                f"after {options.timeout:g} s {count} job(s) still running: they go on and their "
                "results are recorded; give stop() a longer timeout to wait for them",
                timed_out=True,
                running_job_count=count,
            )

    def set_agents(self, agents: Agents) -> None:
        """Replace the agents while the scheduler runs; with errors the old ones stay."""
        with self._lock:
            self._running_engine().set_agents(agents)

    # --- status -------------------------------------------------------------------------------

    def is_running(self) -> bool:
        return self._status == "running"

    def get_status(self) -> SchedulerStatus:
        return self._status

    def get_state(self) -> SchedulerState:
        """The status and the counters since the last start."""
        engine = self._engine
        return SchedulerState(
            status=self._status,
            started_at=engine.started_at if engine else None,
            check_count=engine.check_count if engine else 0,
            trigger_count=engine.trigger_count if engine else 0,
            last_check_at=engine.last_check_at if engine else None,
        )

    def get_schedules(self) -> list[AgentScheduleInfo]:
        """The schedules of all agents of the scheduler, with their next fire times."""
        return open_state(self.options.state).schedule_infos()

    def get_running_job_count(self, agent: str) -> int:
        return self.get_running_job_counts().get(agent, 0)

    def get_running_job_counts(self) -> dict[str, int]:
        """The number of running jobs of this scheduler for each agent that has some."""
        return self._engine.running_counts() if self._engine else {}

    def get_total_running_job_count(self) -> int:
        return sum(self.get_running_job_counts().values())

    def _running_engine(self) -> "SchedulerEngine":
        if self._engine is None or self._status != "running":
            raise SchedulerError("the scheduler is not running: call start(agents) first")
        return self._engine
