"""Synchronizes specs with rows; agents and schedules that were removed keep their history."""

import hashlib
import os
import threading
from collections.abc import Sequence
from dataclasses import asdict
from datetime import datetime
from functools import partial
from pathlib import Path
from typing import Any

import structlog

from agents_app.accounts import project_problem, removal
from agents_app.budgets import holds
from agents_app.clock import HOST_ZONE
from agents_app.conf import CONF, PROGRAM
from agents_app.database import in_transaction
from agents_app.formats import ProjectDiscovery, read_project
from agents_app.models import DEFAULT_TENANT, SKILL_FILE, Agent, Schedule, Tenant
from agents_app.project.config_rows import (
    environment_references,
    sync_notification_targets,
    sync_webhook_sources,
)
from agents_app.runs import AGENT_MISSING, dispatch, schedule_states
from agents_app.schedules import next_fire_after_pause, parse_schedule_text, set_next_fire
from agents_app.skills import (
    AgentSpec,
    BudgetSpec,
    Discovery,
    ProjectBudgetSpec,
    ProjectSpec,
    ScheduleSpec,
)
from agents_app.triggers import UNTIMED_TYPES, UntimedTrigger, parse_trigger

log = structlog.get_logger("drover.skills")
DISABLED_IN_FILE = "enabled: false in the agent's file"
COPIED_FIELDS = (
    *("prompt", "overlap", "catch_up", "catch_up_window_seconds", "gap", "overlap_hour", "anchor"),
    *("jitter_percent", "jitter_seconds", "pause_after_failures"),
)
PARSED_COLUMNS = ("expression", "timezone", "one_shot")
# If one of these columns changes, the next fire is computed again.
TIME_COLUMNS = ("expression", "timezone", "gap", "overlap_hour", "anchor")
ARMED_COLUMNS = ("interval_seconds", "next_fire_at")
S = Schedule.State

# Other writers wait for a transaction: a large project is written in several.
AGENTS_IN_ONE_COMMIT = 50
# The tenant's row is read with every request of its API clients.
MOST_ERRORS = 200
# Of threads that write at the same time, each with a connection to the database.
_WRITERS = threading.BoundedSemaphore(8)

# While a config.toml does not parse, the last valid one stays in force.
_last_good: dict[Path, ProjectSpec] = {}


def sync_project(
    project: Path, now: datetime, tenant_name: str = DEFAULT_TENANT
) -> ProjectDiscovery:
    """Read the directory, write the changes, and admit queued work if slots were added.

    Environment variables belong to the installation: files of other tenants than the default one
    cannot refer to them. Writes nothing if the tenant has another project or is disabled by now.
    """
    server: dict[str, str] | None = None if tenant_name == DEFAULT_TENANT else {}
    discovery = read_project(project, _last_good.get(project), server)
    _write_and_admit(tenant_name, project, discovery, now)
    if not discovery.config_is_broken:
        _last_good[project] = discovery.project
    return discovery


def sync_discovery(discovery: Discovery, now: datetime) -> None:
    """Like `sync_project`, for agents that a program defines; the default tenant owns them."""
    _write_and_admit(DEFAULT_TENANT, CONF.project, discovery, now)


def _write_and_admit(tenant_name: str, project: Path, discovery: Discovery, now: datetime) -> None:
    with _WRITERS:
        changed = _write(tenant_name, project, discovery, now)
    if changed:
        holds.reevaluate_all(changed, now)
        dispatch.admit_tenant(changed, now)


def sync_tenant(tenant: Tenant, now: datetime) -> ProjectDiscovery | None:
    """Like `sync_project`, for the project of the tenant; None if it has none that can be read,
    which is stored with the tenant. What was read before stays in force."""
    directory = tenant.project_directory
    if directory is None:
        return None
    if problem := project_problem(tenant):
        store_problem(tenant.name, problem)
        return None
    return sync_project(directory, now, tenant.name)


def store_problem(tenant_name: str, problem: str) -> None:
    """Store why the project cannot be read, until it is read again."""
    rows = Tenant.objects.filter(name=tenant_name)
    if rows.exclude(definition_errors=[problem]).exists():
        log.warning("project.invalid", tenant=tenant_name, error=problem)
        in_transaction(lambda: rows.update(definition_errors=[problem]))


def _write(tenant_name: str, project: Path, discovery: Discovery, now: datetime) -> int | None:
    """Write the changes; returns the tenant if queued work may be able to start."""

    def begin() -> tuple[Tenant, bool | None] | None:
        found = _find_tenant(tenant_name, project)
        if found is None:
            return None
        tenant, created = found
        _sync_errors(tenant, discovery)
        if discovery.config_is_broken and project not in _last_good and not created:
            # Invalid since before this start: the rows contain the last valid settings.
            return tenant, None
        return tenant, _sync_project_settings(tenant, discovery, now)

    begun = in_transaction(begin)
    if begun is None:
        return None
    tenant, changed = begun
    for name, problems in _changed_problems(tenant, discovery).items():
        in_transaction(partial(_sync_broken_agent, tenant, name, problems))
    if changed is None:
        return None
    changed |= _write_agents(tenant, project, discovery, now)
    in_transaction(lambda: _remove_missing(tenant, project, discovery, now))
    return tenant.pk if changed else None


def _find_tenant(tenant_name: str, project: Path) -> tuple[Tenant, bool] | None:
    """The tenant and whether its project was never read; None if it has another or is disabled.

    Not locked: transactions of runs lock an agent before its tenant."""
    if tenant_name == DEFAULT_TENANT:
        return Tenant.objects.get_or_create(name=DEFAULT_TENANT)
    same = Tenant.objects.filter(name=tenant_name, project=str(project), disabled_at__isnull=True)
    tenant = same.first()
    return (tenant, not tenant.settings) if tenant else None


def _write_agents(tenant: Tenant, project: Path, discovery: Discovery, now: datetime) -> bool:
    """Write the agents that differ from their rows; True if there is one."""
    known: dict[str, tuple[str, str]] = {
        name: (fingerprint, error)
        for name, fingerprint, error in tenant.agents.values_list(
            "name", "definition_hash", "definition_error"
        )
    }
    new = [spec for spec in discovery.agents if known.get(spec.name) != (_fingerprint(spec), "")]

    def write(specs: Sequence[AgentSpec]) -> bool:
        if _find_tenant(tenant.name, project) is None:
            return False
        return sum(_sync_agent(tenant, spec, now) for spec in specs) > 0

    parts = range(0, len(new), AGENTS_IN_ONE_COMMIT)
    written = [in_transaction(partial(write, new[at : at + AGENTS_IN_ONE_COMMIT])) for at in parts]
    return any(written)


def _remove_missing(tenant: Tenant, project: Path, discovery: Discovery, now: datetime) -> None:
    """Of a project that was not read completely, only agents whose directory does not exist."""
    if _find_tenant(tenant.name, project) is None:
        return
    present = {spec.name for spec in discovery.agents} | set(discovery.broken)
    for agent in tenant.agents.filter(removed_at__isnull=True).exclude(name__in=present):
        if not (discovery.complete or _is_gone(agent, project)):
            continue
        log.info("agent.removed", agent=agent.name)
        if _was_never_used(agent):
            removal.detach_audited_of_agent(agent)
            agent.delete()
            continue
        Agent.objects.filter(pk=agent.pk).update(removed_at=now, definition_hash="")
        for schedule in agent.schedules.filter(state=S.ACTIVE):
            schedule_states.pause_schedule(schedule.pk, now, AGENT_MISSING)


def _is_gone(agent: Agent, project: Path) -> bool:
    """False if the project cannot be searched: it may be on a file system that is not mounted."""
    try:
        os.lstat(agent.directory or project)
    except OSError as error:
        return isinstance(error, FileNotFoundError | NotADirectoryError) and project.is_dir()
    return False


def _was_never_used(agent: Agent) -> bool:
    """Whether no version of the agent's file was valid, so that the agent has no history."""
    return not (agent.revision or agent.work_items.exists() or agent.schedules.exists())


def _sync_project_settings(tenant: Tenant, discovery: Discovery, now: datetime) -> bool:
    fingerprint = _fingerprint(discovery.project)
    if tenant.settings.get("fingerprint") == fingerprint:
        return False
    tenant.settings = _settings(discovery.project) | {"fingerprint": fingerprint}
    tenant.scale = discovery.project.scale
    tenant.save(update_fields=["settings", "scale"])
    sync_webhook_sources(tenant, discovery.project.webhooks, now)
    sync_notification_targets(tenant, discovery.project.notify)
    return True


def _sync_errors(tenant: Tenant, discovery: Discovery) -> None:
    errors = [str(one) for error in discovery.errors for one in error.each]
    if tenant.name != DEFAULT_TENANT:
        errors += environment_references(discovery)
    if more := len(errors[MOST_ERRORS:]):
        errors[MOST_ERRORS:] = [f"{more} more errors: {PROGRAM} discover lists them"]
    if errors != tenant.definition_errors:
        for error in errors:
            log.warning("project.invalid", tenant=tenant.name, error=error)
        tenant.definition_errors = errors
        tenant.save(update_fields=["definition_errors"])


def _settings(project: ProjectSpec) -> dict[str, object]:
    caps = _given(project.budget)
    return {
        **({"history_retention_days": days} if (days := project.history_retention_days) else {}),
        "resource_lock_timeout_seconds": project.resource_lock_timeout_seconds,
        # A day of a budget ends at midnight in this time zone.
        "timezone": project.timezone or HOST_ZONE,
        **({"budget": caps} if caps else {}),
    }


def _given(spec: BudgetSpec | ProjectBudgetSpec) -> dict[str, object]:
    return {name: value for name, value in asdict(spec).items() if value is not None}


# --- agents ---------------------------------------------------------------------------------


def _sync_agent(tenant: Tenant, spec: AgentSpec, now: datetime) -> bool:
    """Write one agent; True if anything changed."""
    fingerprint = _fingerprint(spec)
    agent = Agent.objects.filter(tenant=tenant, name=spec.name).first()
    if agent and agent.definition_hash == fingerprint and not agent.definition_error:
        return False
    columns = _columns(spec) | {
        "definition_hash": fingerprint,
        "definition_error": "",
        "removed_at": None,
        "revision": agent.revision + 1 if agent else 1,
    }
    agent = agent or Agent.objects.create(tenant=tenant, name=spec.name)
    # Only these columns: a concurrent pause by a user must not be overwritten.
    Agent.objects.filter(pk=agent.pk).update(**columns, updated_at=now)
    agent.refresh_from_db()
    # Before the schedules of the file are written, which may disable them.
    for schedule in agent.schedules.filter(state=S.PAUSED, pause_note=AGENT_MISSING):
        _resume(schedule, now)
    _sync_schedules(agent, spec, now)
    log.info("agent.defined", agent=agent.name, revision=agent.revision, scale=agent.scale)
    return True


def _columns(spec: AgentSpec) -> dict[str, object]:
    return {
        "description": spec.description,
        "instructions": spec.instructions,
        "command": list(spec.command),
        "harness": spec.harness or "",
        "budget": _given(spec.budget),
        "directory": str(spec.directory),
        "file_name": spec.source_path.name or SKILL_FILE,
        "scale": spec.scale,
        "timeout_seconds": spec.timeout_seconds,
        "work_queue_size": spec.work_queue_size,
        "timezone": spec.timezone or "",
        "max_reruns": spec.max_reruns,
        "max_call_depth": spec.max_call_depth,
        "retries": spec.retries,
        "on_lost": spec.on_lost,
        "schedules_from_output": spec.schedules_from_output,
        "messages_on_stdin": spec.messages == "stdin",
        "runtime": asdict(spec.runtime) | {"sandbox": asdict(spec.sandbox)},
        "env": dict(spec.env),
        "params": dict(spec.params),
        "hooks": asdict(spec.hooks) | {"metadata_file": spec.metadata_file},
        "credentials": list(spec.credentials),
        "webhooks": [asdict(webhook) for webhook in spec.webhooks],
        "work_source": spec.work_source.as_columns() if spec.work_source else None,
    }


def _changed_problems(tenant: Tenant, discovery: Discovery) -> dict[str, str]:
    """The broken agents whose rows have other errors, or do not exist."""
    present = tenant.agents.filter(removed_at__isnull=True)
    known = dict(present.values_list("name", "definition_error"))
    return {name: text for name, text in discovery.broken.items() if known.get(name) != text}


def _sync_broken_agent(tenant: Tenant, name: str, problems: str) -> None:
    """Keep the last valid definition; an agent that never had one is created disabled."""
    agent, _ = Agent.objects.get_or_create(tenant=tenant, name=name, defaults={"scale": 0})
    if agent.definition_error != problems or agent.removed_at:
        Agent.objects.filter(pk=agent.pk).update(definition_error=problems, removed_at=None)


# --- schedules ------------------------------------------------------------------------------


def _sync_schedules(agent: Agent, spec: AgentSpec, now: datetime) -> None:
    named = {schedule_spec.name for schedule_spec in spec.schedules}
    for schedule_spec in spec.schedules:
        _sync_schedule(agent, schedule_spec, now)
    # A finished one-time schedule is not canceled: if it returns, it must not fire again.
    in_use = agent.schedules.filter(source=Schedule.Source.FILE, state__in=[S.ACTIVE, S.PAUSED])
    for gone in in_use.exclude(name__in=named):
        schedule_states.cancel_schedule(gone.pk, now, gone.state)


def _sync_schedule(agent: Agent, spec: ScheduleSpec, now: datetime) -> None:
    """Write one schedule; one that was created by hand with the same name becomes the file's."""
    known = agent.schedules.filter(name=spec.name).first()
    columns = _schedule_columns(agent, spec)
    read = Schedule(**columns, last_completed_at=known.last_completed_at if known else None)
    parse_schedule_text(read, now, allow_past=True)
    renewed = known is None or any(getattr(known, n) != getattr(read, n) for n in TIME_COLUMNS)
    if renewed:
        set_next_fire(read, now)
    understood = (*PARSED_COLUMNS, *ARMED_COLUMNS) if renewed else PARSED_COLUMNS
    columns |= {name: getattr(read, name) for name in understood}
    if known is None:
        known = agent.schedules.create(name=spec.name, **columns)
    else:
        Schedule.objects.filter(pk=known.pk).update(**columns, updated_at=now)
        known.refresh_from_db()
    _sync_schedule_state(known, spec, now, renewed=renewed)


def _schedule_columns(agent: Agent, spec: ScheduleSpec) -> dict[str, Any]:
    values = asdict(spec)
    columns = {name: values[name] for name in COPIED_FIELDS}
    return columns | {
        "tenant_id": agent.tenant_id,
        "source": Schedule.Source.FILE,
        "text": spec.expression,
        "timezone": spec.timezone or HOST_ZONE,
        "work_source": spec.work_source.as_columns() if spec.work_source else None,
    }


def _sync_schedule_state(
    schedule: Schedule, spec: ScheduleSpec, now: datetime, *, renewed: bool
) -> None:
    """A pause by a user stays; a pause by the file ends when the file enables the schedule."""
    over = renewed and schedule.state in {S.COMPLETED, S.FAILED}
    trigger = parse_trigger(schedule.expression)
    reason = "" if spec.enabled else DISABLED_IN_FILE
    if isinstance(trigger, UntimedTrigger):
        reason = reason or trigger.refusal
    if reason:
        _pause_by_file(schedule, now, reason)
    elif over or schedule.state == S.CANCELED or _is_paused_by_file(schedule):
        _resume(schedule, now)


def _pause_by_file(schedule: Schedule, now: datetime, reason: str) -> None:
    if schedule.state == S.CANCELED:
        schedule_states.resume_schedule(schedule.pk, now, S.CANCELED, None)
    schedule_states.pause_schedule(schedule.pk, now, reason)


def _is_paused_by_file(schedule: Schedule) -> bool:
    by_file = (DISABLED_IN_FILE, *(UntimedTrigger(kind).refusal for kind in UNTIMED_TYPES))
    return schedule.state == S.PAUSED and schedule.pause_note in by_file


def _resume(schedule: Schedule, now: datetime) -> None:
    if schedule.one_shot and schedule.state == S.PAUSED:
        schedule.next_fire_at = next_fire_after_pause(schedule, now)
    else:
        set_next_fire(schedule, now)
        if _has_fired_then(schedule):
            Schedule.objects.filter(pk=schedule.pk).update(next_fire_at=None, updated_at=now)
            return
    schedule_states.resume_schedule(schedule.pk, now, schedule.state, schedule.next_fire_at)


def _has_fired_then(schedule: Schedule) -> bool:
    """Whether a one-time schedule has fired at this time already, under whichever spelling."""
    at = schedule.next_fire_at
    return schedule.one_shot and at is not None and schedule.firings.filter(due_at=at).exists()


def _fingerprint(spec: AgentSpec | ProjectSpec) -> str:
    return hashlib.sha256(repr(spec).encode()).hexdigest()
