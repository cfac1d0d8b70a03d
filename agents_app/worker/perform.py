"""What happens between the start and the end of a run, step by step; then a verdict."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import partial

import structlog

from agents_app.errors import DroverError
from agents_app.harness import HARNESSES
from agents_app.launch import (
    Definition,
    Stage,
    definition_of,
    has_commands,
    inject,
    output_of,
    prepare_run,
    remove_workdir,
    run_post_hooks,
    run_pre_hooks,
    signal_directory,
)
from agents_app.output import AfterWhatIsStored, Transcript, WatchedSink
from agents_app.redaction import RedactingRunner, Redactor, log_filter
from agents_app.runners import RUNNERS, Outcome, OutputSink, RunControl, Runner, RunSpec, verdict
from agents_app.runs import Ending, Job
from agents_app.secrets import NO_SECRETS, Secrets, for_run
from agents_app.signals import ScheduleLineWatcher, take_signal_files
from agents_app.worker.report_watcher import ReportWatcher

log = structlog.get_logger("drover.perform")


@dataclass(frozen=True, slots=True)
class RunContext:
    """One run with all that its steps need; what the runner prints has no secrets in it."""

    job: Job
    definition: Definition
    secrets: Secrets
    redactor: Redactor
    control: RunControl
    transcript: Transcript

    def stage(self) -> Stage:
        runner = RedactingRunner(RUNNERS[self.definition.runtime.type], self.redactor)
        return Stage(runner, self.control, self.job.timeout_seconds)


def perform(
    job: Job, control: RunControl, transcript: Transcript, adopted: Runner | None = None
) -> Ending:
    """Whatever goes wrong, the run ends and its slot is free again.

    `adopted` sees a program to its end that went on when its worker died."""
    redactor = NO_SECRETS.redactor(job.token)
    try:
        definition = definition_of(job.agent_id, job.revision)
        secrets = for_run(job.tenant_id, definition.credentials)
        if secrets is not NO_SECRETS:
            redactor = log_filter.watch_for(job.run_id, secrets.redactor(job.token))
        ctx = RunContext(job, definition, secrets, redactor, control, transcript)
        return _from_the_start(ctx) if adopted is None else _from_here_on(ctx, adopted)
    except DroverError as error:
        _end_adopted(adopted)
        return Ending("failed", error=redactor.clean_text(str(error)))
    except Exception as error:
        _end_adopted(adopted)
        log.exception("run.not_performed", **job.log_context)
        said = f"not_performed: {type(error).__name__}: {error}"
        return Ending("failed", error=redactor.clean_text(said))
    finally:
        log_filter.forget(job.run_id)
        remove_workdir(job.run_id)
        transcript.close()


def _end_adopted(adopted: Runner | None) -> None:
    """Nobody will see it to its end, so it is gone before its slot is free."""
    if (end := getattr(adopted, "end", None)) is not None:
        end()


def _from_the_start(ctx: RunContext) -> Ending:
    stage = ctx.stage()
    spec = prepare_run(ctx.job, ctx.definition, ctx.secrets, _instructions(ctx, stage))
    ending = run_pre_hooks(stage, spec, ctx.definition.hooks.pre, ctx.transcript)
    if ending is None:
        if ctx.definition.hooks.pre:
            ctx.transcript.flush()  # the remark that ends them is in a piece of its own
        with _with_schedule_lines(ctx) as sink:
            ending = _watched(ctx, sink, partial(stage.run, spec))
    return _afterwards(ctx, stage, spec, ending)


def _from_here_on(ctx: RunContext, adopted: Runner) -> Ending:
    """Its output is read from the beginning once more, and what it reports of itself with it."""
    instructions = ctx.definition.instructions
    spec = prepare_run(ctx.job, ctx.definition, ctx.secrets, instructions, begun=True)
    runner = RedactingRunner(adopted, ctx.redactor)
    stored = ctx.transcript.go_on()
    with _with_schedule_lines(ctx) as sink:
        rest = AfterWhatIsStored(sink, stored)
        ending = _watched(ctx, rest, partial(runner.run, spec, ctx.control))
    return _afterwards(ctx, ctx.stage(), spec, ending)


# --- the steps ------------------------------------------------------------------------------


def _instructions(ctx: RunContext, stage: Stage) -> str:
    """Commands in them are run as the run itself will be. A script runs its own."""
    instructions = ctx.definition.instructions
    if ctx.definition.body_is_script or not has_commands(instructions):
        return instructions
    spec = prepare_run(ctx.job, ctx.definition, ctx.secrets, "")
    return inject(instructions, partial(output_of, stage, spec))


@contextmanager
def _with_schedule_lines(ctx: RunContext) -> Iterator[OutputSink]:
    """Where the output goes; on its way `/schedule` lines are obeyed, unless the agent says no."""
    if not ctx.definition.schedules_from_output:
        yield ctx.transcript
        return
    writs = ScheduleLineWatcher(ctx.transcript, ctx.job.agent_id, ctx.job.run_id)
    try:
        yield writs
    finally:
        writs.finish()


def _watched(ctx: RunContext, sink: OutputSink, run: Callable[[OutputSink], Outcome]) -> Ending:
    """A tool that reports on itself is listened to while it runs."""
    harness = ctx.definition.harness
    reader = HARNESSES[harness].reader if harness else None
    if reader is None:
        return _ending(run(sink))
    report = ReportWatcher(reader(), ctx.definition.budget, ctx.control.stop)
    with WatchedSink(sink, [report]) as watched:
        outcome = run(watched)
    return report.judge(_ending(outcome))


def _afterwards(ctx: RunContext, stage: Stage, spec: RunSpec, ending: Ending) -> Ending:
    """What the hooks do after the run does not change its end."""
    hooks = ctx.definition.hooks.post
    for problem in run_post_hooks(stage, spec, hooks, ctx.transcript, ending):
        log.warning("hook.failed", **ctx.job.log_context, problem=problem)
    said = take_signal_files(signal_directory(ctx.job.run_id))
    return replace(
        ending,
        output_bytes=ctx.transcript.total_bytes,
        output_cut_bytes=ctx.transcript.buffer.left_out_bytes,
        said=said and {name: ctx.redactor.clean_text(text) for name, text in said.items()},
    )


def _ending(outcome: Outcome) -> Ending:
    judged = verdict(outcome)
    return Ending(
        state=judged.state,
        error=judged.error,
        exit_code=outcome.exit_code,
        pid=outcome.pid,
        wants_rerun=judged.wants_rerun,
    )
