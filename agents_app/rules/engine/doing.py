"""Where rules' errands are done: on threads of beat, so that no look ever waits for one."""

import threading
import time
from collections.abc import Callable
from datetime import datetime
from functools import partial
from pathlib import Path
from queue import SimpleQueue

import structlog
from django.db import DatabaseError, InterfaceError, OperationalError, close_old_connections

from agents_app.rules.engine.actions import perform
from agents_app.rules.engine.commands import run_command
from agents_app.rules.engine.decide import RuleAction
from agents_app.rules.engine.outcome import ActionOutcome, write_down
from agents_app.rules.language import Shell
from agents_app.runners import RunControl

log = structlog.get_logger("drover.rules")
MOST_COMMANDS = 16
STOP_SECONDS = 5.0
AGAIN_SECONDS = 1.0


class ActionExecutor:
    """What concerns agents is done by one thread, in the order of the file; each command has a
    thread of its own. All of them end with the process, and so does what they started."""

    def __init__(self, project: Path, clock: Callable[[], datetime]) -> None:
        self.project, self.clock = project, clock
        self._verbs: SimpleQueue[tuple[RuleAction, int]] = SimpleQueue()
        self._room = threading.Semaphore(MOST_COMMANDS)
        self._commands: dict[threading.Thread, RunControl] = {}
        self._lock = threading.Lock()
        self._begun = False

    def submit(self, errand: RuleAction, tenant_id: int) -> None:
        if isinstance(errand.rule.action, Shell):
            control = RunControl()
            thread = threading.Thread(
                target=self._command, args=(errand, tenant_id, control), daemon=True
            )
            with self._lock:
                thread.start()
                self._commands[thread] = control
            return
        with self._lock:
            if not self._begun:
                threading.Thread(target=self._work, name="rules", daemon=True).start()
                self._begun = True
        self._verbs.put((errand, tenant_id))

    def stop(self) -> None:
        """Before beat ends: commands are told to, and what became of them is written down."""
        with self._lock:
            going_on = dict(self._commands)
        for control in going_on.values():
            control.stop("beat was stopped in the middle of it", STOP_SECONDS / 2)
        deadline = time.monotonic() + STOP_SECONDS
        for thread in going_on:
            thread.join(max(0.0, deadline - time.monotonic()))

    def _work(self) -> None:
        while True:
            errand, tenant_id = self._verbs.get()
            self._do(errand, partial(perform, errand, tenant_id), partial(getattr, errand, "at"))

    def _command(self, errand: RuleAction, tenant_id: int, control: RunControl) -> None:
        try:
            with self._room:
                self._do(
                    errand,
                    lambda: run_command(errand, tenant_id, self.project, control),
                    self.clock,
                )
        finally:
            with self._lock:
                self._commands.pop(threading.current_thread(), None)

    def _do(
        self, errand: RuleAction, act: Callable[[], ActionOutcome], ended: Callable[[], datetime]
    ) -> None:
        """What came of it must be written, or the rule would never be free again."""
        outcome, at = _outcome_of(errand, act), ended()
        while True:
            try:
                return write_down(errand, outcome, at)
            except (OperationalError, InterfaceError) as error:
                log.warning("rule.not_written_yet", rule=errand.rule.name, error=str(error))
            except DatabaseError:
                log.exception("rule.refused", rule=errand.rule.name)
                outcome = ActionOutcome(problem="the database refused what was to be said of it")
            finally:
                close_old_connections()
            time.sleep(AGAIN_SECONDS)


def _outcome_of(errand: RuleAction, act: Callable[[], ActionOutcome]) -> ActionOutcome:
    try:
        return act()
    except DatabaseError as error:
        close_old_connections()
        return ActionOutcome(problem=f"the database did not take it: {error}")
    except Exception as error:
        log.exception("rule.broke", rule=errand.rule.name)
        return ActionOutcome(problem=f"{type(error).__name__}: {error}")
