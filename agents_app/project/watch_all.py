"""Watches the projects of all tenants, each on a thread of its own: none waits for another."""

import threading
import time
from collections.abc import Callable, Collection
from datetime import datetime
from pathlib import Path

import structlog
from django.db import DatabaseError, connection

from agents_app.conf import CONF
from agents_app.models import DEFAULT_TENANT, Tenant
from agents_app.project.sync import store_problem, sync_project, sync_tenant
from agents_app.project.watch import watch_project

log = structlog.get_logger("drover.skills")
# How often new, changed and removed projects of tenants are looked for.
LOOK_SECONDS = 2.0
# A project that is not read within this time is reported with its tenant.
SLOW_SECONDS = 30.0
MOST_DIRECTORIES = 2000

Clock = Callable[[], datetime]


class ProjectWatch:
    """The watch of one project; its thread ends after `stop`, and when it is idle."""

    def __init__(self, tenant_name: str, project: Path, clock: Clock) -> None:
        self.tenant_name, self.project, self.clock = tenant_name, project, clock
        self.stop = threading.Event()
        self.busy_since: float | None = None
        self.is_reported = False
        self.thread = threading.Thread(target=self._watch, name=f"watch {project}", daemon=True)

    def _watch(self) -> None:
        most = None if self.tenant_name == DEFAULT_TENANT else MOST_DIRECTORIES
        watch_project(self.project, self._changed, self.stop, most)

    def _changed(self) -> Collection[Path] | None:
        self.is_reported, self.busy_since = False, time.monotonic()
        try:
            return self._sync()
        except DatabaseError:
            raise
        except Exception as error:
            problem = f"{self.project} could not be read: {type(error).__name__}: {error}"
            store_problem(self.tenant_name, problem[:500])
            raise
        finally:
            self.busy_since = None
            # Many tenants must not hold as many connections.
            connection.close()

    def _sync(self) -> Collection[Path] | None:
        if self.tenant_name == DEFAULT_TENANT:
            return sync_project(self.project, self.clock()).files
        same = Tenant.objects.filter(name=self.tenant_name, project=str(self.project))
        tenant = same.filter(disabled_at__isnull=True).first()
        found = sync_tenant(tenant, self.clock()) if tenant else None
        return found.files if found else None

    def report_if_slow(self) -> None:
        """Store with the tenant that its project is still being read; the end clears it."""
        since = self.busy_since
        if since is None or self.is_reported or time.monotonic() - since < SLOW_SECONDS:
            return
        self.is_reported = True
        problem = (
            f"{self.project} is not read yet after {SLOW_SECONDS:.0f} s: it is very large or on a "
            "slow file system; make it smaller, or move it"
        )
        store_problem(self.tenant_name, problem)


class ProjectWatcher:
    """Has a watch for the project of each enabled tenant, and of the default tenant always."""

    def __init__(self, clock: Clock) -> None:
        self.clock = clock
        self.watches: dict[tuple[str, Path], ProjectWatch] = {}

    def run(self, stop: threading.Event) -> None:
        while not stop.is_set():
            try:
                self.look()
            except DatabaseError as error:
                log.warning("projects.database_unreachable", error=str(error))
                connection.close()
            except Exception:
                log.exception("projects.look_failed")
            stop.wait(LOOK_SECONDS)
        self.close()

    def look(self) -> None:
        """Start and stop watches; report projects that take long."""
        default = (DEFAULT_TENANT, CONF.project)
        if default not in self.watches:
            # Also while the database is unreachable.
            self._start(*default)
        wanted = {default, *_projects()}
        for key in [key for key in self.watches if key not in wanted]:
            self.watches.pop(key).stop.set()
        for key in sorted(wanted - self.watches.keys()):
            self._start(*key)
        for watch in self.watches.values():
            watch.report_if_slow()

    def close(self) -> None:
        for watch in self.watches.values():
            watch.stop.set()

    def _start(self, tenant_name: str, project: Path) -> None:
        watch = ProjectWatch(tenant_name, project, self.clock)
        self.watches[tenant_name, project] = watch
        watch.thread.start()


def _projects() -> list[tuple[str, Path]]:
    enabled = Tenant.objects.filter(disabled_at__isnull=True)
    rows = enabled.exclude(name=DEFAULT_TENANT).exclude(project="")
    return [(name, Path(project)) for name, project in rows.values_list("name", "project")]
