"""What a program can do with its state; imported when Django is set up."""

from agents_app.conf import CONF, PROGRAM
from agents_app.errors import ConfigError, SchedulerError
from agents_app.installation import create_data_directory, create_private_directory, running_up
from agents_app.scheduler.agents import Agents
from agents_app.scheduler.engine import SchedulerEngine
from agents_app.scheduler.run_now import run_now
from agents_app.scheduler.schedule_rows import (
    change_state,
    check_now,
    prompt_of,
    read_infos,
    read_state,
    read_states,
)
from agents_app.scheduler.values import (
    AgentScheduleInfo,
    RunScheduleOptions,
    ScheduleCheckResult,
    SchedulerOptions,
    ScheduleRunResult,
    ScheduleState,
    ScheduleStateUpdates,
    default_logger,
)
from agents_app.stack import first_start
from agents_app.worker import utc_now


class Operations:
    """One object for each process, because a process has one state."""

    def __init__(self) -> None:
        self._is_prepared = False
        self._engine: SchedulerEngine | None = None

    @property
    def variables(self) -> dict[str, str]:
        return {"DROVER_DATA": str(CONF.data), "DATABASE_URL": CONF.database_url}

    def prepare_database(self) -> None:
        """Create or migrate the tables, at the first call."""
        if self._is_prepared:
            return
        try:
            create_data_directory(CONF.data)
            create_private_directory(CONF.data / "agents")
            first_start.ensure_database()
            first_start.migrate()
        except (ConfigError, OSError) as error:
            raise SchedulerError(f"state: {error}") from error
        self._is_prepared = True

    # --- the scheduler ------------------------------------------------------------------------

    def start_engine(self, agents: Agents, options: SchedulerOptions) -> SchedulerEngine:
        """Start the only engine of this process; agents that are not given are disabled."""
        if self._engine is not None:
            raise SchedulerError("another Scheduler of this process is running: stop it first")
        if process := running_up(CONF.data):
            raise SchedulerError(
                f"state: `{PROGRAM} up` runs on {CONF.data} as process {process}; stop that "
                "process, or use another state"
            )
        logger = options.logger or default_logger()
        engine = SchedulerEngine(agents, options.check_interval, logger, options.on_trigger)
        engine.start()
        self._engine = engine
        return engine

    def forget_engine(self, engine: SchedulerEngine) -> None:
        if self._engine is engine:
            self._engine = None

    # --- schedules ----------------------------------------------------------------------------

    def schedule_state(self, agent: str, schedule: str) -> ScheduleState:
        return read_state(agent, schedule)

    def agent_schedule_states(self, agent: str) -> dict[str, ScheduleState]:
        return read_states(agent)

    def update_schedule_state(
        self, agent: str, schedule: str, updates: ScheduleStateUpdates
    ) -> ScheduleState:
        return change_state(agent, schedule, updates, utc_now())

    def check_schedule(self, agent: str, schedule: str) -> ScheduleCheckResult:
        return check_now(agent, schedule, utc_now())

    def schedule_infos(self) -> list[AgentScheduleInfo]:
        return read_infos()

    def prompt_of_schedule(self, agent: str, schedule: str, work_item: object) -> str:
        return prompt_of(agent, schedule, work_item)

    def run_schedule(
        self, agent: str, schedule: str, options: RunScheduleOptions
    ) -> ScheduleRunResult:
        """Run the schedule now with the running engine, or with one for this run alone."""
        if self._engine is not None and options.on_trigger is not None:
            raise SchedulerError(
                "on_trigger: a Scheduler of this process is running and executes the run; "
                "give on_trigger to that Scheduler"
            )
        return run_now(agent, schedule, options, has_engine=self._engine is not None)
