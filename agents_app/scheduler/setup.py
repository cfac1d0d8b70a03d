"""Sets Django up for the state that a program names, once in each process."""

import os
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

import django
from django.apps import apps
from django.conf import settings
from django.utils.module_loading import import_string

from agents_app.errors import ConfigError, SchedulerError
from agents_app.scheduler.values import State, check_state

if TYPE_CHECKING:
    from agents_app.scheduler.operations import Operations

SETTINGS = "scheduler_project.settings"
# The role of a process that is not Drover's: no pages, and logging stays as the program set it up.
ROLE = "embedded"
DEFAULT_DATA = ".drover"
_lock = threading.Lock()
_operations: "Operations | None" = None


def open_state(state: State) -> "Operations":
    """What can be done with the state; sets Django up, and creates or migrates the database.

    Raises SchedulerError for a second state: settings of Django are those of the process.
    """
    global _operations
    check_state(state)
    with _lock:
        wanted = _variables(state)
        if _operations is None:
            _set_up_if_needed(state, wanted)
            # By name: the module has tables, and imports Drover's settings.
            _operations = import_string("agents_app.scheduler.operations.Operations")()
        known = _operations.variables
        if any(known[name] != value for name, value in wanted.items()):
            raise SchedulerError(
                f"state: this process uses {_shown(known)}, and a process has one state; start "
                f"another process for {_shown(wanted)}"
            )
        _operations.prepare_database()
        return _operations


def _set_up_if_needed(state: State, wanted: dict[str, str]) -> None:
    if apps.ready:
        return
    if settings.configured or os.environ.get("DJANGO_SETTINGS_MODULE"):
        with _changed_environment(wanted):
            django.setup()
    elif state is None and not (os.environ.keys() & {"DROVER_DATA", "DATABASE_URL"}):
        raise SchedulerError(
            "state: give a directory or the URL of a database, or set DROVER_DATA or DATABASE_URL"
        )
    else:
        _set_up(wanted)


def _set_up(wanted: dict[str, str]) -> None:
    data = wanted.get("DROVER_DATA") or os.environ.get("DROVER_DATA") or DEFAULT_DATA
    data = _absolute(data)
    project = os.environ.get("DROVER_PROJECT") or str(Path(data) / "agents")
    own = {
        "DROVER_DATA": data,
        "DROVER_PROJECT": project,
        "DROVER_ROLE": ROLE,
        "DJANGO_SETTINGS_MODULE": SETTINGS,
    }
    with _changed_environment(own | wanted):
        try:
            django.setup()
        except ConfigError as error:
            raise SchedulerError(f"state: {error}") from error


def _variables(state: State) -> dict[str, str]:
    """The variables of Drover that a state stands for."""
    if state is None:
        return {}
    text = str(state)
    if "://" not in text:
        path = Path(text).expanduser()
        if path.exists() and not path.is_dir():
            raise SchedulerError(
                f"state: {path} is not a directory; give a directory, or the URL of a database "
                "such as sqlite:///path/to/file"
            )
        data = _absolute(path)
        return {"DROVER_DATA": data, "DATABASE_URL": f"sqlite:///{data}/drover.sqlite3"}
    if urlsplit(text).scheme not in {"sqlite", "postgres", "postgresql"}:
        # The URL may contain a password: the message has only the scheme.
        raise SchedulerError(
            f"state: a URL that starts with {urlsplit(text).scheme!r}: expected sqlite:/// or "
            "postgresql://"
        )
    return {"DATABASE_URL": text}


def _absolute(path: str | Path) -> str:
    return str(Path(path).resolve())


def _shown(variables: Mapping[str, str]) -> str:
    """A state without its password."""
    parts = urlsplit(variables.get("DATABASE_URL", ""))
    if parts.scheme in {"", "sqlite"}:
        return variables.get("DROVER_DATA") or parts.path
    return f"{parts.scheme}://{parts.hostname or ''}{parts.path}"


@contextmanager
def _changed_environment(variables: Mapping[str, str]) -> Iterator[None]:
    """Settings read the environment when they are loaded; afterwards it is the program's again."""
    before = {name: os.environ.get(name) for name in variables}
    os.environ.update(variables)
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                os.environ.pop(name, None)
            else:
                os.environ[name] = value
