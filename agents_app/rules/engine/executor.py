"""Performs the actions of rules on threads of beat, so that a tick never waits for one."""

import threading
import time
from collections.abc import Callable
from datetime import datetime
from functools import partial
from pathlib import Path
from queue import SimpleQueue

import structlog
from django.db import DatabaseError, InterfaceError, OperationalError, close_old_connections

from agents_app.models import Tenant
from agents_app.rules.engine.commands import run_command
from agents_app.rules.engine.decide import RuleAction
from agents_app.rules.engine.outcome import ActionOutcome, record_outcome
from agents_app.rules.engine.perform import perform
from agents_app.rules.language import ShellCommand
from agents_app.runners import RunControl

log = structlog.get_logger("drover.rules")
MAX_COMMANDS = 16
STOP_SECONDS = 5.0
RETRY_SECONDS = 1.0


class ActionExecutor:
    """Performs actions on agents on one thread, in the order of the file, and each shell command
    on a thread of its own, in the project of its tenant. The threads and their child processes end
    with the process."""

    def __init__(self, project: Path, clock: Callable[[], datetime]) -> None:
        """`project` is the directory of tenants whose row names none."""
        self.project, self.clock = project, clock
        self._agent_actions: SimpleQueue[tuple[RuleAction, int]] = SimpleQueue()
        # Of each tenant: long commands of one must not keep another waiting.
        self._command_slots: dict[int, threading.Semaphore] = {}
        self._commands: dict[threading.Thread, RunControl] = {}
        self._lock = threading.Lock()
        self._thread_started = False

    def submit(self, action: RuleAction, tenant_id: int) -> None:
        if isinstance(action.rule.action, ShellCommand):
            control = RunControl()
            thread = threading.Thread(
                target=self._run_command, args=(action, tenant_id, control), daemon=True
            )
            with self._lock:
                thread.start()
                self._commands[thread] = control
            return
        with self._lock:
            if not self._thread_started:
                threading.Thread(
                    target=self._perform_agent_actions, name="rules", daemon=True
                ).start()
                self._thread_started = True
        self._agent_actions.put((action, tenant_id))

    def stop(self) -> None:
        """Stop the running commands and wait until their outcomes are recorded; beat ends then."""
        with self._lock:
            running = dict(self._commands)
        for control in running.values():
            control.stop("beat was stopped while the command was running", STOP_SECONDS / 2)
        deadline = time.monotonic() + STOP_SECONDS
        for thread in running:
            thread.join(max(0.0, deadline - time.monotonic()))

    def _perform_agent_actions(self) -> None:
        while True:
            action, tenant_id = self._agent_actions.get()
            self._perform_and_record(
                action, partial(perform, action, tenant_id), partial(getattr, action, "at")
            )

    def _run_command(self, action: RuleAction, tenant_id: int, control: RunControl) -> None:
        try:
            with self._slots_of(tenant_id):
                self._perform_and_record(
                    action,
                    lambda: run_command(action, tenant_id, self._directory(tenant_id), control),
                    self.clock,
                )
        finally:
            with self._lock:
                self._commands.pop(threading.current_thread(), None)

    def _slots_of(self, tenant_id: int) -> threading.Semaphore:
        with self._lock:
            return self._command_slots.setdefault(tenant_id, threading.Semaphore(MAX_COMMANDS))

    def _directory(self, tenant_id: int) -> Path:
        paths = Tenant.objects.filter(pk=tenant_id).values_list("project", flat=True)
        project = paths.first()
        return Path(project) if project else self.project

    def _perform_and_record(
        self,
        action: RuleAction,
        perform_action: Callable[[], ActionOutcome],
        ended: Callable[[], datetime],
    ) -> None:
        """Retry until the outcome is recorded: otherwise the rule would be held for ever."""
        outcome, at = _outcome_of(action, perform_action), ended()
        while True:
            try:
                return record_outcome(action, outcome, at)
            except (OperationalError, InterfaceError) as error:
                log.warning("rule.not_written_yet", rule=action.rule.name, error=str(error))
            except DatabaseError:
                log.exception("rule.refused", rule=action.rule.name)
                outcome = ActionOutcome(problem="the database refused to store the outcome")
            finally:
                close_old_connections()
            time.sleep(RETRY_SECONDS)


def _outcome_of(action: RuleAction, perform_action: Callable[[], ActionOutcome]) -> ActionOutcome:
    try:
        return perform_action()
    except DatabaseError as error:
        close_old_connections()
        return ActionOutcome(problem=f"database error: {error}")
    except Exception as error:
        log.exception("rule.broke", rule=action.rule.name)
        return ActionOutcome(problem=f"{type(error).__name__}: {error}")
