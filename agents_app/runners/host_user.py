"""Runs a program as another Unix user: directly if the worker is root, else through sudo."""

import os
import pwd
from dataclasses import replace
from pathlib import Path

from agents_app.runners.base import CannotSpawn, RunSpec
from agents_app.runners.child import ChildProcess, Identity, spawn
from agents_app.runners.limits import Confinement, confine, limit_processes
from agents_app.runners.ownership import change_owner
from agents_app.runners.process import ProcessRunner
from agents_app.runners.sudo import ShimChild, spawn_through_sudo


class HostUserRunner(ProcessRunner):
    """Root may signal the other user's processes; with sudo a shim of that user does."""

    def _start(self, spec: RunSpec) -> ChildProcess:
        identity = find_user(spec.runtime.run_as)
        if os.geteuid() == identity.uid:
            return spawn(spec, gated=True)
        if os.geteuid() == 0:
            return spawn_as(spec, identity)
        return spawn_through_sudo(spec, identity)

    def _confine(self, spec: RunSpec, child: ChildProcess) -> Confinement | None:
        """The kernel counts processes per user, so another user always has a limit.

        Until sudo changes the user, the process is that of the worker, whose processes would be
        counted, and sudo would pass the limit on: there the shim sets the limit."""
        directly = not isinstance(child, ShimChild)
        if spec.runtime.asked_limits is None:
            if directly:
                limit_processes(child.pid, spec.runtime.pids_limit)
            return None
        return confine(child.pid, spec.run_id, spec.runtime.limits, by_process=directly)


def find_user(name: str) -> Identity:
    try:
        entry = pwd.getpwnam(name)
    except KeyError:
        raise CannotSpawn(
            f"no_such_user: there is no user {name!r} on this host: "
            f"`useradd --system --create-home {name}`, or name another in `runtime.run_as`"
        ) from None
    if entry.pw_uid == 0:
        raise CannotSpawn("runs_as_root: an agent is not run as root: name another `run_as`")
    return Identity(entry.pw_name, entry.pw_uid, entry.pw_gid, entry.pw_dir)


def spawn_as(spec: RunSpec, identity: Identity) -> ChildProcess:
    """As root: give the writable directories to the user, then start the program."""
    for mount in spec.mounts:
        if mount.writable:
            change_owner(mount.path, identity.uid, identity.gid)
    try:
        env = {**spec.env, **identity.env}
        if spec.sandbox is not None:
            # Agents that share the user must not share its home.
            env["HOME"] = spec.env.get("HOME", identity.home)
        return spawn(replace(spec, env=env), identity, gated=True)
    except PermissionError as error:
        if error.filename is None or Path(os.fsdecode(error.filename)) != spec.cwd:
            raise
        raise CannotSpawn(
            f"EACCES: the user {identity.name} may not enter {spec.cwd}: "
            "allow others to enter the directories above it (chmod o+x), or move DROVER_DATA"
        ) from None
