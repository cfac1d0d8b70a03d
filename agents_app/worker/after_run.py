"""Runs the hooks with events of a run, between the end of its program and the record of its end.

They are part of the run, as post-hooks are: if the worker dies meanwhile, the run is lost, and its
hooks are not run again. Only a container is adopted by another worker, which runs all hooks after
the program again.
"""

import json
import time
from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any

import structlog
from django.db import InterfaceError, OperationalError, connection

from agents_app.errors import DroverError
from agents_app.launch import (
    ERROR_EVENTS,
    EVENTS,
    EventHook,
    HookFacts,
    HookTools,
    TimedRunner,
    build_context,
    read_metadata_file,
    run_event_hooks,
    write_marker,
)
from agents_app.models import Run
from agents_app.notifications import announce
from agents_app.redaction import Redactor
from agents_app.runners import RunSpec
from agents_app.runs import Ending
from agents_app.secrets import for_hooks
from agents_app.signals import signal_columns
from agents_app.worker.run_context import RunContext

log = structlog.get_logger("drover.after_run")
MAX_OUTPUT_BYTES = 16 * 1024
RETRY_SECONDS = 1.0


@dataclass(frozen=True, slots=True)
class _Row:
    """The columns of a run that its hooks need."""

    started_at: datetime | None
    schedule: str | None
    metadata_json: str
    exit_signal: int | None
    rerun_requested: bool


def run_hooks_of_ending(
    ctx: RunContext,
    ending: Ending,
    runner: TimedRunner | None = None,
    spec: RunSpec | None = None,
) -> Ending:
    """Run `after_run`, then `on_error` if the run failed; the ending as the hooks change it.

    `ending.file_signals` must be set. Raises no error: the program has ended, and its end must be
    recorded."""
    if not ctx.definition.hooks.have_events or ending.state not in EVENTS:
        return ending
    try:
        return _run_hooks(ctx, ending, runner, spec)
    except Exception:
        log.exception("hook.broke", **ctx.job.log_context)
        return ending


def _run_hooks(
    ctx: RunContext, ending: Ending, runner: TimedRunner | None, spec: RunSpec | None
) -> Ending:
    row = _read_row(ctx)
    metadata = _metadata(ctx, row, spec)
    signals = signal_columns(ending.file_signals or {})
    # What the signals of the run make of its ending, which is recorded after the hooks.
    seen = ending.after_signals(
        signals.get("exit_signal", row.exit_signal),
        rerun_requested=signals.get("rerun_requested", row.rerun_requested),
    )
    hooks = ctx.definition.hooks
    tools = _tools(ctx, runner, spec)
    facts = _facts(ctx, row, seen, metadata)
    decided = _run_list(ctx, "after_run", hooks.after_run, seen, facts, tools)
    if EVENTS[decided.state] in ERROR_EVENTS:
        decided = _run_list(ctx, "on_error", hooks.on_error, decided, facts, tools)
    stored = json.dumps(metadata) if metadata != _stored_metadata(row) else None
    if decided.is_final:
        return replace(decided, metadata_json=stored)
    return replace(ending, metadata_json=stored)


def _tools(ctx: RunContext, runner: TimedRunner | None, spec: RunSpec | None) -> HookTools:
    """With the credentials of the run, and with those that only hooks have."""
    own = for_hooks(ctx.job.tenant_id, ctx.definition.hooks.credentials)
    redactor = Redactor(own.values)

    def clean(text: str) -> str:
        return redactor.clean_text(ctx.redactor.clean_text(text))

    return HookTools(
        runner=runner,
        spec=spec,
        sink=ctx.transcript,
        clean=clean,
        variables={**own.env, **ctx.secrets.env},
        announce=lambda text: announce(ctx.job, clean(text), ctx.clock()),
    )


def _run_list(
    ctx: RunContext,
    name: str,
    hooks: tuple[EventHook, ...],
    ending: Ending,
    facts: HookFacts,
    tools: HookTools,
) -> Ending:
    """The ending; a run that had succeeded has failed if a hook without `continue_on_error` did."""
    summary = run_event_hooks(name, hooks, build_context(ending, facts), ending, tools)
    for problem in summary.problems:
        log.warning("hook.failed", **ctx.job.log_context, problem=problem)
    if not summary.fatal or ending.state != "succeeded":
        return ending
    return replace(ending, state="failed", error=summary.fatal[0], wants_rerun=False, is_final=True)


# --- what the context contains --------------------------------------------------------------


def _facts(ctx: RunContext, row: _Row, ending: Ending, metadata: Mapping[str, Any]) -> HookFacts:
    now = ctx.clock()
    reported = ending.report.text if ending.report else ""
    return HookFacts(
        run_id=ctx.job.run_id,
        agent=ctx.definition.name,
        schedule=row.schedule or "",
        started_at=row.started_at or now,
        ended_at=now,
        output=reported[-MAX_OUTPUT_BYTES:] or (ctx.tail.text if ctx.tail else ""),
        metadata=metadata,
    )


def _metadata(ctx: RunContext, row: _Row, spec: RunSpec | None) -> dict[str, Any]:
    """The metadata of the file and that of signals, which has priority."""
    found: dict[str, Any] = {}
    if spec is not None:
        name = ctx.definition.hooks.metadata_file
        try:
            found = read_metadata_file(spec.cwd, name, ctx.redactor.clean_text)
        except DroverError as error:
            write_marker(ctx.transcript, f"metadata_file: {error}")
            log.warning("hook.metadata_refused", **ctx.job.log_context, problem=str(error))
    return found | _stored_metadata(row)


def _stored_metadata(row: _Row) -> dict[str, Any]:
    stored: dict[str, Any] = json.loads(row.metadata_json) if row.metadata_json else {}
    return stored


def _read_row(ctx: RunContext) -> _Row:
    """Repeats until the database answers: the hooks must not see an ending without signals."""
    columns = ("started_at", "schedule__name", "metadata_json", "exit_signal", "rerun_requested")
    run = Run.objects.filter(pk=ctx.job.run_id).values_list(*columns)
    while True:
        try:
            return _Row(*run.get())
        except (OperationalError, InterfaceError) as error:
            # If the database stays away, the lease ends, and the guard kills this process.
            log.warning("hook.delayed", **ctx.job.log_context, error=str(error))
            connection.close()
        time.sleep(RETRY_SECONDS)
