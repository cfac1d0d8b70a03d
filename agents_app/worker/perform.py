"""The steps of a run between its start and its end: prepare, run, hooks, ending."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from datetime import datetime
from functools import partial

import structlog

from agents_app.errors import DroverError
from agents_app.harness import HARNESSES
from agents_app.launch import (
    TimedRunner,
    command_output,
    definition_of,
    has_commands,
    inject,
    prepare_run,
    run_post_hooks,
    run_pre_hooks,
    signal_directory,
    write_marker,
)
from agents_app.output import ProgramOutputEnd, Transcript, UnstoredOutputSink, WatchedSink
from agents_app.redaction import RedactingRunner, Redactor, log_filter
from agents_app.runners import (
    Outcome,
    OutputSink,
    RunControl,
    Runner,
    RunSpec,
    this_kernel,
    verdict,
)
from agents_app.runs import Ending, Job
from agents_app.secrets import NO_SECRETS, for_run
from agents_app.signals import ScheduleLineWatcher, take_signal_files
from agents_app.worker.after_run import MAX_OUTPUT_BYTES, run_hooks_of_ending
from agents_app.worker.report_watcher import ReportWatcher
from agents_app.worker.run_context import RunContext

log = structlog.get_logger("drover.perform")


def perform(
    job: Job,
    control: RunControl,
    transcript: Transcript,
    clock: Callable[[], datetime],
    adopted: Runner | None = None,
) -> Ending:
    """Run the program of a started run, or supervise an adopted container; returns its ending.

    An exception becomes an ending, too, so that the caller always frees the slot. The workdir and
    an ended container stay for the caller, who removes them after the end was recorded."""
    redactor = NO_SECRETS.redactor(job.token)
    ctx: RunContext | None = None
    try:
        definition = definition_of(job.agent_id, job.revision)
        ctx = RunContext(job, definition, NO_SECRETS, redactor, control, transcript, clock)
        ctx = _with_secrets(ctx)
        return _run_from_start(ctx) if adopted is None else _run_adopted(ctx, adopted)
    except DroverError as error:
        return _not_performed(ctx, redactor, str(error), adopted)
    except Exception as error:
        log.exception("run.not_performed", **job.log_context)
        problem = f"not_performed: {type(error).__name__}: {error}"
        return _not_performed(ctx, redactor, problem, adopted)
    finally:
        log_filter.remove_redactor(job.run_id)
        transcript.close()


def _with_secrets(ctx: RunContext) -> RunContext:
    """With the credentials of the agent, and with the end of the output if hooks need it."""
    if ctx.definition.hooks.have_events:
        ctx = replace(ctx, tail=ProgramOutputEnd(MAX_OUTPUT_BYTES))
    secrets = for_run(ctx.job.tenant_id, ctx.definition.credentials)
    if secrets is NO_SECRETS:
        return ctx
    redactor = log_filter.add_redactor(ctx.job.run_id, secrets.redactor(ctx.job.token))
    return replace(ctx, secrets=secrets, redactor=redactor)


def _not_performed(
    ctx: RunContext | None, redactor: Redactor, problem: str, adopted: Runner | None
) -> Ending:
    _end_adopted(adopted)
    ending = Ending("failed", error=(ctx.redactor if ctx else redactor).clean_text(problem))
    return ending if ctx is None else run_hooks_of_ending(ctx, ending)


def _run_from_start(ctx: RunContext) -> Ending:
    """Instructions, workdir, pre-hooks, the program, post-hooks: in this order."""
    runner = ctx.timed_runner()
    spec = prepare_run(ctx.job, ctx.definition, ctx.secrets, _instructions(ctx, runner))
    ending = run_pre_hooks(runner, spec, ctx.definition.hooks.pre, ctx.transcript)
    if ending is None:
        if ctx.definition.hooks.pre:
            ctx.transcript.flush()  # the last remark of the hooks is stored as a piece of its own
        _note_sandbox(ctx, spec)
        with _schedule_line_sink(ctx) as sink:
            ending = _run_and_read_report(ctx, ctx.with_tail(sink), partial(runner.run, spec))
        _note_refusals(ctx)
    return _finish_run(ctx, runner, spec, ending)


def _run_adopted(ctx: RunContext, adopted: Runner) -> Ending:
    """Supervise a container whose worker died. Its output is read from the beginning, for the
    reports in it; the part that is stored already is skipped."""
    instructions = ctx.definition.instructions
    spec = prepare_run(ctx.job, ctx.definition, ctx.secrets, instructions, is_running=True)
    runner = RedactingRunner(adopted, ctx.redactor)
    stored = ctx.transcript.resume()
    with _schedule_line_sink(ctx) as sink:
        rest = ctx.with_tail(UnstoredOutputSink(sink, stored))
        ending = _run_and_read_report(ctx, rest, partial(runner.run, spec, ctx.control))
    return _finish_run(ctx, ctx.timed_runner(), spec, ending)


def _end_adopted(adopted: Runner | None) -> None:
    """Remove an adopted container that is no longer supervised, before its slot is free."""
    if (end := getattr(adopted, "end", None)) is not None:
        end()


# --- steps ----------------------------------------------------------------------------------


def _instructions(ctx: RunContext, runner: TimedRunner) -> str:
    """The instructions with the output of the commands in them. A script is left as it is."""
    instructions = ctx.definition.instructions
    if ctx.definition.body_is_script or not has_commands(instructions):
        return instructions
    spec = prepare_run(ctx.job, ctx.definition, ctx.secrets, "")
    return inject(instructions, partial(command_output, runner, spec))


def _note_sandbox(ctx: RunContext, spec: RunSpec) -> None:
    """Tell in the log what Drover changes in the command of a tool because of the sandbox."""
    harness = HARNESSES.get(ctx.definition.harness)
    if harness and harness.inside_sandbox and spec.sandbox and this_kernel().landlock:
        _note(ctx, harness.sandbox_note)


def _note_refusals(ctx: RunContext) -> None:
    for path, advice in ctx.control.refusals.items():
        _note(ctx, f"the sandbox refused {path}: {advice}")


def _note(ctx: RunContext, text: str) -> None:
    write_marker(ctx.transcript, ctx.redactor.clean_text(text))


@contextmanager
def _schedule_line_sink(ctx: RunContext) -> Iterator[OutputSink]:
    """The sink of the output; carries out `/schedule` lines unless the agent disables them."""
    if not ctx.definition.schedules_from_output:
        yield ctx.transcript
        return
    watcher = ScheduleLineWatcher(ctx.transcript, ctx.job.agent_id, ctx.job.run_id)
    try:
        yield watcher
    finally:
        watcher.finish()


def _run_and_read_report(
    ctx: RunContext, sink: OutputSink, run: Callable[[OutputSink], Outcome]
) -> Ending:
    """Run the program and read the reports of its harness, if it has one with a reader."""
    harness = ctx.definition.harness
    reader = HARNESSES[harness].reader if harness else None
    if reader is None:
        return _ending(run(sink))
    report = ReportWatcher(reader(), ctx.definition.budget, ctx.control.stop)
    with WatchedSink(sink, [report]) as watched:
        outcome = run(watched)
    return report.applied_to(_ending(outcome))


def _finish_run(ctx: RunContext, runner: TimedRunner, spec: RunSpec, ending: Ending) -> Ending:
    """Run the post-hooks, read signals left in files, then run the hooks with events, which may
    change the ending."""
    hooks = ctx.definition.hooks
    for problem in run_post_hooks(runner, spec, hooks.post, ctx.transcript, ending):
        log.warning("hook.failed", **ctx.job.log_context, problem=problem)
    signals = take_signal_files(signal_directory(ctx.job.run_id))
    if signals is not None:
        signals = {name: ctx.redactor.clean_text(text) for name, text in signals.items()}
        ending = replace(ending, file_signals=signals)
    if hooks.have_events:
        ending = run_hooks_of_ending(ctx, ending, runner, spec)
    return replace(
        ending,
        sandbox=ctx.control.sandbox,
        output_bytes=ctx.transcript.total_bytes,
        output_cut_bytes=ctx.transcript.buffer.left_out_bytes,
    )


def _ending(outcome: Outcome) -> Ending:
    result = verdict(outcome)
    return Ending(
        state=result.state,
        error=result.error,
        exit_code=outcome.exit_code,
        pid=outcome.pid,
        wants_rerun=result.wants_rerun,
    )
