"""What happens between the start and the end of a run, step by step; then a verdict."""

from dataclasses import dataclass, replace
from functools import partial

import structlog

from agents_app import redacted_log
from agents_app.credential_book import NO_SECRETS, Secrets, for_run
from agents_app.definition import Definition, definition_of
from agents_app.errors import DroverError
from agents_app.harness import HARNESSES
from agents_app.harness.watcher import ReportWatcher
from agents_app.injection import has_commands, inject
from agents_app.job import Ending, Job
from agents_app.preparation import prepare
from agents_app.redaction import RedactingRunner
from agents_app.room import remove_room
from agents_app.runners import RUNNERS
from agents_app.runners.base import Outcome, RunControl, Runner, RunSpec, verdict
from agents_app.stage import Stage, output_of, run_post_hooks, run_pre_hooks
from agents_app.transcript import AfterWhatIsStored, Transcript
from agents_app.watching import Watched

log = structlog.get_logger("drover.perform")


@dataclass(frozen=True, slots=True)
class Adopted:
    """A program that went on when its worker died: how to see it to its end."""

    runner: Runner


def perform(
    job: Job, control: RunControl, transcript: Transcript, adopted: Adopted | None = None
) -> Ending:
    """Whatever goes wrong, the run ends and its slot is free again."""
    redactor = NO_SECRETS.redactor(job.token)
    try:
        definition = definition_of(job.agent_id, job.revision)
        secrets = for_run(job.tenant_id, definition.credentials)
        if secrets is not NO_SECRETS:
            redactor = redacted_log.watch_for(job.run_id, secrets.redactor(job.token))
        runner = RedactingRunner(RUNNERS[definition.runtime.type], redactor)
        stage = Stage(runner, control, job.timeout_seconds)
        if adopted is None:
            return _on_stage(stage, job, definition, secrets, transcript)
        end = RedactingRunner(adopted.runner, redactor)
        return _go_on(stage, end, job, definition, secrets, transcript)
    except DroverError as error:
        return Ending("failed", error=redactor.clean_text(str(error)))
    except Exception as error:
        log.exception("run.not_performed", **job.told)
        said = f"not_performed: {type(error).__name__}: {error}"
        return Ending("failed", error=redactor.clean_text(said))
    finally:
        redacted_log.forget(job.run_id)
        remove_room(job.run_id)
        transcript.close()


def _on_stage(
    stage: Stage, job: Job, definition: Definition, secrets: Secrets, transcript: Transcript
) -> Ending:
    """What the hooks print belongs to the run; what they do after it does not change its end."""
    instructions = _instructions(stage, job, definition, secrets)
    spec = prepare(job, definition, secrets, instructions)
    ending = run_pre_hooks(stage, spec, definition.hooks.pre, transcript)
    if ending is None:
        ending = _run_program(stage, spec, definition, transcript)
    return _afterwards(stage, job, spec, definition, transcript, ending)


def _go_on(
    stage: Stage,
    end: Runner,
    job: Job,
    definition: Definition,
    secrets: Secrets,
    transcript: Transcript,
) -> Ending:
    """Its output is read from the beginning once more, and what it reports of itself with it."""
    spec = prepare(job, definition, secrets, definition.instructions)
    report = _report_watcher(definition, stage)
    rest = AfterWhatIsStored(transcript, transcript.go_on())
    watched = Watched(rest, [report] if report else [])
    outcome = end.run(spec, stage.control, watched)
    ending = report.judge(_ending(outcome)) if report else _ending(outcome)
    return _afterwards(stage, job, spec, definition, transcript, ending)


def _afterwards(
    stage: Stage,
    job: Job,
    spec: RunSpec,
    definition: Definition,
    transcript: Transcript,
    ending: Ending,
) -> Ending:
    for problem in run_post_hooks(stage, spec, definition.hooks.post, transcript, ending):
        log.warning("hook.failed", **job.told, problem=problem)
    return replace(
        ending,
        output_bytes=transcript.total_bytes,
        output_cut_bytes=transcript.buffer.left_out_bytes,
    )


def _instructions(stage: Stage, job: Job, definition: Definition, secrets: Secrets) -> str:
    """Commands in them are run as the run itself will be. A script runs its own."""
    if definition.body_is_script or not has_commands(definition.instructions):
        return definition.instructions
    spec = prepare(job, definition, secrets, "")
    return inject(definition.instructions, partial(output_of, stage, spec))


def _run_program(
    stage: Stage, spec: RunSpec, definition: Definition, transcript: Transcript
) -> Ending:
    report = _report_watcher(definition, stage)
    outcome = stage.run_watched(spec, transcript, [report] if report else [])
    ending = _ending(outcome)
    return report.judge(ending) if report else ending


def _report_watcher(definition: Definition, stage: Stage) -> ReportWatcher | None:
    reader = HARNESSES[definition.harness].reader if definition.harness else None
    return ReportWatcher(reader(), definition.budget, stage.control.stop) if reader else None


def _ending(outcome: Outcome) -> Ending:
    judged = verdict(outcome)
    return Ending(
        state=judged.state,
        error=judged.error,
        exit_code=outcome.exit_code,
        pid=outcome.pid,
        wants_rerun=judged.wants_rerun,
    )
