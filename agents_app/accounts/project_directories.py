"""The project directories of tenants: which one a tenant may have, and the change of it."""

import os
from datetime import datetime
from pathlib import Path

from django.db.models import QuerySet

from agents_app.conf import CONF, PROGRAM
from agents_app.database import in_transaction
from agents_app.errors import Refused
from agents_app.events import journal
from agents_app.models import DEFAULT_TENANT, Tenant

LONGEST_PATH = 1024


def checked_project(text: str, owner: str = "") -> str:
    """The real path of a directory that the tenant `owner` may have as its project.

    Raises Refused with the reason otherwise. In the caller's transaction, which holds a lock on
    the tenants: two tenants must not get one directory at the same time.
    """
    if not text.strip():
        raise Refused("--project: give the directory that contains agents/")
    directory = Path(os.path.abspath(Path(text).expanduser()))  # noqa: PTH100 - links are kept
    if reason := _unusable(directory):
        raise Refused(f"the project directory {directory} {reason}")
    real = directory.resolve()
    if len(str(real)) > LONGEST_PATH:
        raise Refused(f"the path of the project directory has more than {LONGEST_PATH} characters")
    if reason := overlap(real, owner):
        raise Refused(f"the project directory {real} {reason}")
    return str(real)


def project_problem(tenant: Tenant) -> str:
    """Why the stored directory of a tenant cannot be read now, with the remedy; or empty.

    The directory was checked when it was stored; it, or that of another tenant, may have changed.
    """
    directory = tenant.project_directory
    if directory is None or tenant.name == DEFAULT_TENANT:
        return ""
    reason = _unusable(directory)
    if not reason and directory.resolve() != directory:
        reason = "is reached through a symbolic link now: restore it"
    reason = reason or overlap(directory, tenant.name)
    remedy = f"or set another one: {PROGRAM} tenant project {tenant.name} DIR"
    return f"the project directory {directory} {reason}, {remedy}" if reason else ""


def change_project(tenant: Tenant, text: str, by: str, now: datetime) -> str:
    """Set the project directory of a tenant and return its path.

    Agents that the new directory does not have are marked as removed when it is read.
    """
    if tenant.name == DEFAULT_TENANT:
        raise Refused(
            f"the project of the tenant {DEFAULT_TENANT} is DROVER_PROJECT: "
            "set the variable and start Drover again"
        )

    def change() -> str:
        lock_tenants()
        project = checked_project(text, tenant.name)
        Tenant.objects.filter(pk=tenant.pk).update(project=project)
        detail = f"{by}: {project}"[:500]
        entry = journal.JournalEntry(
            "tenant.project_changed", now, tenant.pk, detail=detail, actor=by
        )
        journal.record(entry)
        return project

    return in_transaction(change)


def lock_tenants() -> None:
    """Lock all tenants until the transaction ends."""
    list(Tenant.objects.select_for_update(no_key=True).order_by("pk").values_list("pk", flat=True))


def overlap(directory: Path, owner: str) -> str:
    """Whose directory is the same as, inside or around this one, with the remedy; or empty."""
    others = Tenant.objects.exclude(name=owner).exclude(project="")
    taken = [(Path(path), f"that of the tenant {name}") for name, path in _paths(others)]
    if owner != DEFAULT_TENANT:
        taken.append((CONF.project, f"that of the tenant {DEFAULT_TENANT}"))
    taken.append((CONF.data, "the data directory of Drover"))
    for other, whose in taken:
        if directory == other:
            return f"is {whose}: each needs a directory of its own"
        if directory.is_relative_to(other):
            return f"is inside {other}, {whose}: choose a directory outside of it"
        if other.is_relative_to(directory):
            return f"contains {other}, {whose}: choose a directory beside it"
    return ""


def _paths(tenants: QuerySet[Tenant]) -> list[tuple[str, str]]:
    return list(tenants.order_by("name").values_list("name", "project"))


def _unusable(directory: Path) -> str:
    try:
        if not directory.exists():
            return "does not exist: create it"
        if not directory.is_dir():
            return "is not a directory"
    except OSError as error:
        return f"cannot be read: {error.strerror}"
    if not os.access(directory, os.R_OK | os.X_OK):
        return "cannot be read by the user of Drover: allow it with chmod or chown"
    return ""
