"""Starts Drover on this machine; agents_app.stack supervises the processes."""

import contextlib
import logging
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from django.core.checks import CheckMessage, run_checks
from django.core.management.base import BaseCommand, CommandParser
from django.db import connections

from agents_app.accounts import ensure_bootstrap_token
from agents_app.checks import DROVER
from agents_app.conf import CONF, PROGRAM, ROOT, command_line, read_conf
from agents_app.errors import ConfigError, Refused
from agents_app.formats import ProjectDiscovery, read_project
from agents_app.installation import (
    DRAIN_SIGNAL,
    create_data_directory,
    hold_lock,
    record_holder,
    repair_permissions,
    running_address,
    running_up,
)
from agents_app.models import DEFAULT_TENANT, Agent, NotifyTarget, Schedule, Tenant, WebhookSource
from agents_app.project import sync_project
from agents_app.runs import control
from agents_app.stack import (
    HANDLED_SIGNALS,
    ONLY_FOR_UP,
    STARTED_AT,
    first_start,
    preflight,
    start_in_background,
)


class Command(BaseCommand):
    help = "Start Redis, workers, beat, the gateway and Flower, and supervise them until Ctrl-C."
    # handle() runs the checks of settings, after the checks with one-line errors.
    requires_system_checks: list[str] = []

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument(
            "-d", "--detach", action="store_true", help="Run in the background; return when ready."
        )
        parser.add_argument(
            "--attach", action="store_true", help="If it runs in the background, show its lines."
        )
        parser.add_argument(
            "--log-format",
            choices=("human", "json"),
            help="Default: human on a terminal, else lines of JSON after the name of the process.",
        )

    def handle(self, *args: Any, **options: Any) -> None:
        if options["attach"] and (process := running_up(CONF.data)):
            self._attach(process)
            return
        started_at = time.time()
        # Without a handler the signal would end this process; the supervisor has one.
        signal.pthread_sigmask(signal.SIG_BLOCK, {DRAIN_SIGNAL})
        try:
            preflight.ensure_project(CONF.project)
            create_data_directory(CONF.data)
            with hold_lock(CONF.data) as lock_fd:
                variables = project_variables()
                ports = preflight.choose_ports(read_conf({**os.environ, **variables}), os.environ)
                for line in ensure_checks():
                    self.stderr.write(f"warning: {line}")
                if log_format := _log_format(options["log_format"]):
                    variables["DROVER_LOG_FORMAT"] = log_format
                with _fewer_lines(hidden=log_format == "human"):
                    self._prepare_database()
                    found = prepare()
                self._repair_permissions()
                variables |= ports | secret_variables(found) | {STARTED_AT: str(started_at)}
                address = read_conf({**os.environ, **variables}).gateway_url
                if options["detach"]:
                    self._start_detached(lock_fd, variables, address)
                else:
                    record_holder(lock_fd, os.getpid(), address)
                    become_supervisor(lock_fd, variables)
        except OSError as error:
            raise ConfigError(f"cannot start: {error}") from None
        except KeyboardInterrupt:
            sys.exit(130)

    def _prepare_database(self) -> None:
        first_start.ensure_database()
        if applied := first_start.migrate():
            self.stdout.write(f"database: {applied} migrations applied")
        if password := first_start.ensure_admin(os.environ.get("DROVER_ADMIN_PASSWORD", "")):
            self.stdout.write(f"login: user admin, password {password} (shown only once)")

    def _start_detached(self, lock_fd: int, variables: dict[str, str], address: str) -> None:
        connections.close_all()
        self.stdout.write("starting Drover in the background")
        self.stdout.flush()
        log = _background_log()
        env, argv = supervisor_environment(variables), supervisor_argv(lock_fd)
        process = start_in_background(argv, env, lock_fd, address, log)
        self.stdout.write(
            f"Drover is ready\n"
            f"  dashboard  {address}/admin/ (user admin)\n"
            f"  login      {command_line('login_link')} prints a link\n"
            f"  project    {CONF.project}\n"
            f"  log        {log}\n"
            f"  stop       {PROGRAM} down (process {process})"
        )

    def _attach(self, process: int) -> None:
        """Print the lines of the background process until it ends, or until Ctrl-C."""
        log = _background_log()
        if not log.exists():
            raise Refused(
                f"process {process} runs on another terminal: its lines cannot be shown here"
            )
        self.stdout.write(f"process {process} at {running_address(CONF.data)}; Ctrl-C detaches")
        argv = ["tail", "-n", "20", "-f", f"--pid={process}", str(log)]
        with contextlib.suppress(KeyboardInterrupt):
            subprocess.run(argv, check=False)

    def _repair_permissions(self) -> None:
        as_others = Agent.objects.filter(removed_at__isnull=True, runtime__type="host-user")
        if repaired := repair_permissions(CONF, passage=as_others.exists()):
            self.stdout.write(f"data directory: permissions of {repaired} paths repaired")


def project_variables() -> dict[str, str]:
    """`[gateway]` of config.toml as environment variables; existing variables win."""
    gateway = read_project(CONF.project).project.gateway
    values = {"DROVER_PORT": str(gateway.port), "DROVER_GATEWAY_URL": gateway.url}
    return {name: value for name, value in values.items() if value and not os.environ.get(name)}


def ensure_checks() -> list[str]:
    """Checks the settings: raises ConfigError on errors, returns warnings, a line each.

    Django's own checks read models, pages and addresses, which no setting changes, and take longer
    than all else that `up` does; `doctor` and the tests run them.
    """
    found = [message for message in run_checks(tags=[DROVER]) if not message.is_silenced()]
    if serious := [_line(message) for message in found if message.is_serious()]:
        raise ConfigError("; ".join(serious))
    return [_line(message) for message in found]


def _line(message: CheckMessage) -> str:
    return f"{message.msg} {message.hint or ''} ({message.id})"


def prepare() -> ProjectDiscovery:
    """Reads the project, creates the bootstrap token, and marks the scheduler as running."""
    now = datetime.now(UTC)
    found = sync_project(CONF.project, now)
    if token := os.environ.get("DROVER_BOOTSTRAP_TOKEN"):
        ensure_bootstrap_token(Tenant.objects.get(name=DEFAULT_TENANT), token)
    control.start_scheduler(now)
    return found


def secret_variables(found: ProjectDiscovery) -> dict[str, str]:
    """The variable with the names of all variables that sources, targets and files refer to, and
    the values that only a file of the project has."""
    references = [each for row in WebhookSource.objects.all() for each in row.secret_refs]
    for rows in (Agent.objects, Schedule.objects):
        sources = rows.filter(work_source__isnull=False).values_list("work_source", flat=True)
        references += [source.get("auth", "") for source in sources if source]
    for target in NotifyTarget.objects.all():
        references += [target.url, target.secret_ref]
    referred = {each.removeprefix("env:") for each in references if each.startswith("env:")}
    referred |= found.variables
    names = sorted(referred | set(CONF.secret_variables))
    values = {name: found.environment[name] for name in names if name in found.environment}
    return values | {"DROVER_SECRET_VARIABLES": ",".join(names)}


def _log_format(chosen: str | None) -> str:
    """Of the option, the environment, or for a terminal; empty: as for a pipe."""
    given = chosen or os.environ.get("DROVER_LOG_FORMAT", "")
    return given or ("human" if sys.stdout.isatty() else "")


@contextlib.contextmanager
def _fewer_lines(*, hidden: bool) -> Iterator[None]:
    """Hides log lines of level info on a terminal: the supervisor says what was started."""
    logger = logging.getLogger("drover")
    before = logger.level
    if hidden:
        logger.setLevel(logging.WARNING)
    try:
        yield
    finally:
        logger.setLevel(before)


def _background_log() -> Path:
    return CONF.data / "logs" / "up.log"


def supervisor_argv(lock_fd: int) -> list[str]:
    return [sys.executable, "-m", "agents_app.stack", str(lock_fd)]


def supervisor_environment(variables: dict[str, str]) -> dict[str, str]:
    env = {name: value for name, value in os.environ.items() if name not in ONLY_FOR_UP}
    # Absolute paths: the processes have another working directory.
    paths = {"DROVER_DATA": str(CONF.data), "DROVER_PROJECT": str(CONF.project)}
    return env | variables | paths


def become_supervisor(lock_fd: int, variables: dict[str, str]) -> None:
    """Replaces this process, which frees the memory and threads of Django."""
    connections.close_all()
    os.set_inheritable(lock_fd, True)
    env = supervisor_environment(variables)
    sys.stdout.flush()
    os.chdir(ROOT)
    # A Ctrl-C during the start of the supervisor is delivered when it can handle it.
    signal.pthread_sigmask(signal.SIG_BLOCK, HANDLED_SIGNALS)
    os.execve(sys.executable, supervisor_argv(lock_fd), env)  # noqa: S606
