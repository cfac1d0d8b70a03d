"""The checks of `manage.py doctor`: each finding has a verdict and says what to do.

Checks only read. A check that fails with an error reports the error as its finding.
"""

import shutil
import tempfile
from collections.abc import Callable, Mapping
from datetime import datetime, timedelta
from pathlib import Path

import redis
from django.core import checks
from django.db import DatabaseError, connection
from django.db.migrations.executor import MigrationExecutor

from agents_app.conf import CONF, PROGRAM, command_line
from agents_app.database import ENGINE, read_schema
from agents_app.errors import DroverError
from agents_app.formats import read_project
from agents_app.installation import client_url, redis_url
from agents_app.maintenance.findings import (
    OK,
    WARNING,
    WRONG,
    Check,
    CheckResults,
    Finding,
    one_line,
)
from agents_app.maintenance.fleet_checks import FLEET_CHECKS
from agents_app.maintenance.invariants import INVARIANTS, violations
from agents_app.maintenance.sandbox_checks import check_sandbox
from agents_app.maintenance.security_checks import (
    accepts_without_password,
    check_docker_socket,
    check_permissions,
)
from agents_app.models import (
    Scheduler,
    Tenant,
    Worker,
)
from agents_app.runs import SILENT_BEAT_SECONDS, read_scheduler, shutdown
from agents_app.worker import boot_id, this_host

LOW_DISK_BYTES, FULL_DISK_BYTES = 1_000_000_000, 100_000_000
SKEW = timedelta(seconds=5)
REDIS_SECONDS = 2
RESTART_WORKER = "if it stays, start it again with the new version"
START = f"start Drover: {PROGRAM} up"
SECURE_REDIS = "set requirepass in the configuration of the server, and the password in REDIS_URL"
SECURE_POSTGRES = "set scram-sha-256 for this user in pg_hba.conf, and the password in DATABASE_URL"
RAISE_MAXMEMORY = "raise maxmemory of the Redis server, or remove other keys"


def examine(clock: Callable[[], datetime]) -> list[Finding]:
    """Runs all checks; each has its own time, because a slow check must not age the next one."""
    findings = [finding for name in WITHOUT_DATABASE for finding in _run_check(name, clock())]
    database = _run_check("database", clock())
    findings += database
    if all(finding.verdict != WRONG for finding in database):
        findings += [finding for name in WITH_DATABASE for finding in _run_check(name, clock())]
    return findings


def examine_rows(now: datetime) -> list[Finding]:
    """Search for rows that must not exist; this reads whole tables."""
    found = [
        Finding("invariants", WRONG, f"{v.name}: {v.count}, such as {v.examples}. {v.meaning}")
        for v in violations(now)
    ]
    return found or [Finding("invariants", OK, f"{len(INVARIANTS)} hold")]


def _run_check(name: str, now: datetime) -> list[Finding]:
    check = {**WITHOUT_DATABASE, "database": check_database, **WITH_DATABASE}[name]
    try:
        found = [Finding(name, *result) for result in check(now)]
    except (DatabaseError, DroverError, OSError) as error:
        return [Finding(name, WRONG, f"could not be checked: {one_line(error)}")]
    # A check with a problem reports nothing as healthy.
    problems = [finding for finding in found if finding.verdict != OK]
    if any(finding.verdict == WRONG for finding in problems):
        return problems
    return found or [Finding(name, OK, "healthy")]


# --- checks without the database ------------------------------------------------------------


def check_settings(_: datetime) -> CheckResults:
    for message in checks.run_checks():
        verdict = WRONG if message.is_serious() else WARNING
        yield verdict, f"{message.id}: {message.msg}", message.hint or ""


def check_data(_: datetime) -> CheckResults:
    advice = "set DROVER_DATA to a directory that this user may write to"
    if not CONF.data.is_dir():
        yield WRONG, f"{CONF.data} does not exist", f"{START}, or {advice}"
        return
    try:
        with tempfile.TemporaryFile(dir=CONF.data):
            pass
    except OSError as error:
        yield WRONG, f"{CONF.data} cannot be written: {error.strerror}", advice
    yield _free_space(CONF.data)


def check_database_disk(_: datetime) -> CheckResults:
    """A SQLite file may be on another disk than the data directory."""
    file = ENGINE.file()
    if file is None or not file.exists() or not CONF.data.exists():
        return
    if file.parent.stat().st_dev != CONF.data.stat().st_dev:
        yield _free_space(file.parent)


def _free_space(directory: Path) -> tuple[str, str, str]:
    free = shutil.disk_usage(directory).free
    verdict = WRONG if free < FULL_DISK_BYTES else WARNING if free < LOW_DISK_BYTES else OK
    return (
        verdict,
        f"{directory}: {free / 1e9:.1f} GB free",
        "" if verdict == OK else "free some space",
    )


def check_redis(_: datetime) -> CheckResults:
    advice = "check REDIS_URL and the server it names" if CONF.redis_url else START
    try:
        url = client_url(redis_url(CONF))
        with redis.Redis.from_url(
            url, socket_timeout=REDIS_SECONDS, socket_connect_timeout=REDIS_SECONDS
        ) as client:
            memory = client.info("memory")
    except (redis.RedisError, ValueError, OSError) as error:
        # Work is kept in the database; it starts when the sweep can send hints again.
        yield WRONG, f"cannot be reached: {one_line(error)}", advice
        return
    used, limit = int(memory["used_memory"]), int(memory["maxmemory"])
    if limit and used >= limit:
        yield WRONG, f"is full: {used} of {limit} bytes; runs start late", RAISE_MAXMEMORY
    else:
        yield OK, "answers", ""
    if accepts_without_password(url, REDIS_SECONDS):
        advice = SECURE_REDIS if CONF.redis_url else f"start Drover again: {PROGRAM} up"
        yield WARNING, "serves clients without a password, and so every run", advice


def check_project(_: datetime) -> CheckResults:
    found = read_project(CONF.project)
    for error in found.errors:
        for problem in error.each:
            yield WRONG, str(problem), "fix the file; the last valid definition stays in use"
    if not found.errors:
        verdict, advice = (OK, "") if found.agents else (WARNING, "add agents/<name>/SKILL.md")
        other = "" if found.format == "drover" else f" (format {found.format})"
        yield verdict, f"{CONF.project}{other}: {len(found.agents)} agents", advice
    if found.report:
        detail = f"{len(found.report)} fields or files of {found.format} are not honoured"
        yield WARNING, detail, f"{PROGRAM} discover lists them"


# --- the database ---------------------------------------------------------------------------


def check_database(_: datetime) -> CheckResults:
    try:
        connection.ensure_connection()
        executor = MigrationExecutor(connection)
    except DatabaseError as error:
        yield WRONG, f"cannot be opened: {one_line(error)}", "check DATABASE_URL and DROVER_DATA"
        return
    if plan := executor.migration_plan(executor.loader.graph.leaf_nodes()):
        yield WRONG, f"{len(plan)} migrations are missing", command_line("migrate")
    elif unknown := read_schema().unknown:
        detail = f"its schema {unknown[-1]} is newer than this version of Drover"
        yield WRONG, detail, "start the new version; processes of this version start no work"
    else:
        yield OK, f"{ENGINE.name}, all migrations applied", ""
    if ENGINE.accepts_wrong_password():
        detail = "lets this user in with any password, and so every run"
        yield WARNING, detail, SECURE_POSTGRES


def check_scheduler(now: datetime) -> CheckResults:
    state = read_scheduler(now).state
    if state == Scheduler.State.DRAINING:
        count = shutdown.count_running()
        runs = "1 run is" if count == 1 else f"{count} runs are"
        advice = f"Drover exits when the last run has ended; then start it: {PROGRAM} up"
        yield WARNING, f"is draining: no new run starts, {runs} still running", advice
    else:
        yield OK, f"is {state}", ""
    for tenant in Tenant.objects.filter(paused_at__isnull=False):
        note = f" ({tenant.pause_note})" if tenant.pause_note else ""
        yield WARNING, f"is paused for {tenant.name}{note}", f"{PROGRAM} resume"


def check_workers(now: datetime) -> CheckResults:
    here = Worker.objects.filter(ended_at__isnull=True)
    alive = here.filter(lease_until__gt=now).count()
    yield (OK, f"{alive} alive", "") if alive else (WRONG, "none is alive", START)
    if read_scheduler(now).state != Scheduler.State.DRAINING:
        for worker in here.filter(lease_until__gt=now, state=Worker.State.DRAINING):
            detail = f"{worker.name} (pid {worker.pid}) is draining: it is being stopped, or it is"
            yield WARNING, f"{detail} older than the schema of the database", RESTART_WORKER
    for worker in here.filter(lease_until__lte=now):
        advice = "the sweep ends its runs; if this stays, check beat"
        yield WARNING, f"{worker.name} has not renewed its lease", advice


def check_beat(now: datetime) -> CheckResults:
    row = read_scheduler(now)
    last = row.last_check_at
    silent = last is None or now - last > timedelta(seconds=SILENT_BEAT_SECONDS)
    if row.state == Scheduler.State.DRAINING and silent:
        yield OK, "stopped by the drain", ""  # a drain stops beat before the workers
    elif last is None:
        yield WRONG, "has never searched for due schedules", START
    elif silent:
        yield WRONG, f"silent for {(now - last).total_seconds():.0f} s", START


def check_clock(now: datetime) -> CheckResults:
    """Leases and due times are compared on several hosts, so their clocks must agree."""
    advice = "let NTP set the clocks of all hosts"
    difference = ENGINE.clock_difference(now)
    if abs(difference) > SKEW:
        seconds = difference.total_seconds()
        yield WRONG, f"the database is {seconds:+.0f} s from this host", advice
    if Scheduler.objects.filter(last_check_at__gt=now + SKEW).exists():
        yield (
            WRONG,
            "the last check of beat is in the future: a clock was set back, or clocks differ",
            advice,
        )
    old = Worker.objects.filter(ended_at__isnull=True, host=this_host())
    for worker in old.exclude(boot_id=boot_id()):
        yield WARNING, f"{worker.name} is from before the last reboot", "the sweep will end it"


WITHOUT_DATABASE: Mapping[str, Check] = {
    "settings": check_settings,
    "data directory": check_data,
    "permissions": check_permissions,
    "disk of the database": check_database_disk,
    "redis": check_redis,
    "project": check_project,
}
WITH_DATABASE: Mapping[str, Check] = {
    "scheduler": check_scheduler,
    "workers": check_workers,
    "beat": check_beat,
    "clock": check_clock,
    "sandbox": check_sandbox,
    **FLEET_CHECKS,
    "docker socket": check_docker_socket,
}
