"""Is everything as it must be? One small check each, with a verdict and what to do.

Reads only, and never raises: what a check cannot find out is its finding.
"""

import os
import shutil
import tempfile
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from pathlib import Path

import redis
from django.core import checks
from django.db import DatabaseError, connection
from django.db.migrations.executor import MigrationExecutor
from django.db.models import Count, Q

from agents_app.conf import CONF
from agents_app.environment import base_environment
from agents_app.errors import DroverError
from agents_app.lease import boot_id, this_host
from agents_app.maintenance.engine_check import engine_problems
from agents_app.maintenance.readiness import SILENT_BEAT_SECONDS
from agents_app.models import Agent, Schedule, Scheduler, Tenant, Worker, WorkItem
from agents_app.rows import one
from agents_app.runners import RUNNERS
from agents_app.skills.discover import discover
from agents_app.stack.redis_server import client_url, redis_url
from agents_app.triggers import next_fire, parse_trigger, zone

OK, WARNING, WRONG = "ok", "warning", "wrong"
LITTLE_DISK, NO_DISK = 1_000_000_000, 100_000_000
NEARLY_FULL = 0.8
SKEW = timedelta(seconds=5)
REDIS_SECONDS = 2
START = "start Drover: manage.py up"


@dataclass(frozen=True, slots=True)
class Finding:
    check: str
    verdict: str
    detail: str
    advice: str = ""


Said = Iterator[tuple[str, str, str]]
Check = Callable[[datetime], Said]


def examine(now: datetime) -> list[Finding]:
    findings = [finding for name in WITHOUT_DATABASE for finding in _do(name, now)]
    database = _do("database", now)
    findings += database
    if all(finding.verdict != WRONG for finding in database):
        findings += [finding for name in WITH_DATABASE for finding in _do(name, now)]
    return findings


def _do(name: str, now: datetime) -> list[Finding]:
    check = {**WITHOUT_DATABASE, "database": check_database, **WITH_DATABASE}[name]
    try:
        return [Finding(name, *said) for said in check(now)] or [Finding(name, OK, "nothing amiss")]
    except (DatabaseError, DroverError, OSError) as error:
        return [Finding(name, WRONG, f"could not be checked: {_line(error)}")]


# --- what needs no tables -------------------------------------------------------------------


def check_settings(_: datetime) -> Said:
    for message in checks.run_checks():
        verdict = WRONG if message.is_serious() else WARNING
        yield verdict, f"{message.id}: {message.msg}", message.hint or ""


def check_data(_: datetime) -> Said:
    advice = "set DROVER_DATA to a directory that this user may write to"
    if not CONF.data.is_dir():
        yield WRONG, f"{CONF.data} does not exist", f"{START}, or {advice}"
        return
    try:
        with tempfile.TemporaryFile(dir=CONF.data):
            pass
    except OSError as error:
        yield WRONG, f"{CONF.data} cannot be written: {error.strerror}", advice
    free = shutil.disk_usage(CONF.data).free
    verdict = WRONG if free < NO_DISK else WARNING if free < LITTLE_DISK else OK
    yield verdict, f"{CONF.data}: {free / 1e9:.1f} GB free", "" if verdict == OK else "free some"


def check_redis(_: datetime) -> Said:
    advice = "check REDIS_URL and that server" if CONF.redis_url else START
    try:
        url = client_url(redis_url(CONF))
        with redis.Redis.from_url(
            url, socket_timeout=REDIS_SECONDS, socket_connect_timeout=REDIS_SECONDS
        ) as client:
            client.ping()
    except (redis.RedisError, ValueError, OSError) as error:
        # Work is kept meanwhile; it starts when the sweep's hints get through again.
        yield WRONG, f"cannot be reached: {_line(error)}", advice
    else:
        yield OK, "answers", ""


def check_project(_: datetime) -> Said:
    found = discover(CONF.project)
    for error in found.errors:
        for problem in error.each:
            yield WRONG, str(problem), "mend the file; the last good definition runs meanwhile"
    if not found.errors:
        verdict, advice = (OK, "") if found.agents else (WARNING, "add agents/<name>/SKILL.md")
        yield verdict, f"{CONF.project}: {len(found.agents)} agents", advice


# --- the database ---------------------------------------------------------------------------


def check_database(_: datetime) -> Said:
    try:
        connection.ensure_connection()
        executor = MigrationExecutor(connection)
    except DatabaseError as error:
        yield WRONG, f"cannot be opened: {_line(error)}", "check DATABASE_URL and DROVER_DATA"
        return
    if plan := executor.migration_plan(executor.loader.graph.leaf_nodes()):
        yield WRONG, f"{len(plan)} migrations are missing", "manage.py migrate"
    else:
        yield OK, f"{connection.vendor}, all migrations applied", ""


def check_scheduler(_: datetime) -> Said:
    state = Scheduler.objects.filter(pk=1).values_list("state", flat=True).first()
    if state == Scheduler.State.STOPPING:
        yield WARNING, "is stopping: nothing new starts", "wait for it: manage.py stop"
    else:
        yield OK, f"is {state or Scheduler.State.STOPPED}", ""
    for tenant in Tenant.objects.filter(paused_at__isnull=False):
        note = f" ({tenant.pause_note})" if tenant.pause_note else ""
        yield WARNING, f"is paused for {tenant.name}{note}", "manage.py resume"


def check_workers(now: datetime) -> Said:
    here = Worker.objects.filter(ended_at__isnull=True)
    alive = here.filter(lease_until__gt=now).count()
    yield (OK, f"{alive} alive", "") if alive else (WRONG, "none is alive", START)
    for worker in here.filter(lease_until__lte=now):
        advice = "the sweep ends its runs; if this stays, look at beat"
        yield WARNING, f"{worker.name} has not renewed its lease", advice


def check_beat(now: datetime) -> Said:
    last = Scheduler.objects.filter(pk=1).values_list("last_check_at", flat=True).first()
    if last is None:
        yield WRONG, "has never looked for due schedules", START
    elif now - last > timedelta(seconds=SILENT_BEAT_SECONDS):
        yield WRONG, f"silent for {(now - last).total_seconds():.0f} s", START


def check_clock(now: datetime) -> Said:
    """Leases and due times are compared on several hosts, so their clocks must agree."""
    advice = "let NTP set the clocks of all hosts"
    if connection.vendor == "postgresql":
        row = one("SELECT clock_timestamp()", [])
        if row and abs(row[0] - now) > SKEW:
            seconds = (row[0] - now).total_seconds()
            yield WRONG, f"the database is {seconds:+.0f} s from this host", advice
    if Scheduler.objects.filter(last_check_at__gt=now + SKEW).exists():
        yield WRONG, "beat looked in the future: a clock went back, or hosts differ", advice
    old = Worker.objects.filter(ended_at__isnull=True, host=this_host())
    for worker in old.exclude(boot_id=boot_id()):
        yield WARNING, f"{worker.name} is from before the last reboot", "the sweep will end it"


# --- agents ---------------------------------------------------------------------------------


def check_agents(_: datetime) -> Said:
    path = base_environment(os.environ)["PATH"]
    agents = Agent.objects.filter(removed_at__isnull=True, scale__gt=0)
    for agent in agents.order_by("name"):
        if problem := _program_problem(agent, path):
            yield WRONG, f"{agent.name}: {problem}", f"mend {agent.directory}/SKILL.md"
    yield OK, f"{len(agents)} enabled", ""


def _program_problem(agent: Agent, path: str) -> str:
    runtime = agent.runtime.get("type", "process")
    if not agent.command:
        return "it has no command, and the project has none either"
    if runtime not in RUNNERS:
        return f"there is no runtime {runtime!r} here"
    # Only of a plain process is the program on this host, for this user.
    if runtime != "process":
        return ""
    program = str(agent.command[0])
    if program.startswith("./"):
        program = str(Path(agent.directory) / program[2:])
    return "" if shutil.which(program, path=path) else f"cannot run {program}: no such program"


def check_containers(_: datetime) -> Said:
    for problem, advice in engine_problems():
        yield WRONG, problem, advice


def check_schedules(now: datetime) -> Said:
    """Whatever was refused when it was saved, and got here all the same."""
    active = Schedule.objects.filter(state=Schedule.State.ACTIVE).select_related("agent")
    for schedule in active.order_by("pk"):
        try:
            trigger, place = parse_trigger(schedule.expression), zone(schedule.timezone)
            problem = "" if next_fire(trigger, now, place) else "it can never fire again"
        except (DroverError, ValueError) as error:
            problem = _line(error)
        if not problem and schedule.next_fire_at is None:
            problem = "it is not armed"
        if problem:
            yield WRONG, f"{schedule} ({schedule.expression}): {problem}", "edit or cancel it"
    yield OK, f"{len(active)} active", ""


def check_queues(_: datetime) -> Said:
    waiting = Count("work_items", filter=Q(work_items__state=WorkItem.State.QUEUED))
    for agent in Agent.objects.annotate(waiting=waiting).filter(waiting__gt=0).order_by("name"):
        size = max(1, agent.work_queue_size)
        if agent.waiting >= size * NEARLY_FULL:
            verdict = WRONG if agent.waiting >= size else WARNING
            detail = f"{agent.name}: {agent.waiting} of {size} waiting; more drop the oldest"
            yield verdict, detail, "raise its scale or its work_queue_size"


def _line(error: Exception) -> str:
    return " ".join(str(error).split()) or type(error).__name__


WITHOUT_DATABASE: Mapping[str, Check] = {
    "settings": check_settings,
    "data directory": check_data,
    "redis": check_redis,
    "project": check_project,
}
WITH_DATABASE: Mapping[str, Check] = {
    "scheduler": check_scheduler,
    "workers": check_workers,
    "beat": check_beat,
    "clock": check_clock,
    "agents": check_agents,
    "containers": check_containers,
    "schedules": check_schedules,
    "queues": check_queues,
}
