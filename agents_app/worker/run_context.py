"""One run and what its steps need."""

from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime

from agents_app.launch import Definition, TimedRunner
from agents_app.output import ProgramOutputEnd, Transcript
from agents_app.redaction import RedactingRunner, Redactor
from agents_app.runners import RUNNERS, OutputSink, RunControl
from agents_app.runs import Job
from agents_app.secrets import Secrets


@dataclass(frozen=True, slots=True)
class RunContext:
    job: Job
    definition: Definition
    secrets: Secrets
    redactor: Redactor
    control: RunControl
    transcript: Transcript
    clock: Callable[[], datetime]
    # The end of the program's output, for hooks; None if the agent has no hooks with events.
    tail: ProgramOutputEnd | None = None

    def timed_runner(self) -> TimedRunner:
        """The agent's runner; secrets are removed from the output. The time limit starts now."""
        runner = RedactingRunner(RUNNERS[self.definition.runtime.type], self.redactor)
        return TimedRunner(runner, self.control, self.job.timeout_seconds)

    def with_tail(self, sink: OutputSink) -> OutputSink:
        return sink if self.tail is None else self.tail.before(sink)
