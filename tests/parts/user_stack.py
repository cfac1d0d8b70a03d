"""A stack whose processes belong to an ordinary user."""

import os
import pwd
import shlex
import shutil
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

from agents_app.conf import ROOT
from tests.parts.missing import missing
from tests.parts.stack_part import PrivateStack


class UserStack(PrivateStack):
    """The user may not enter all directories above the checkout and Python: the processes have a
    mount namespace in which these directories can be entered and contain nothing else."""

    def __init__(self, user: str, directory: Path, database_url: str = "") -> None:
        self.owner = pwd.getpwnam(user)
        super().__init__(directory, database_url, HOME=self.owner.pw_dir)
        self._prefix = command_prefix(self.owner, directory)

    def give_files(self) -> None:
        """Make the user the owner of what root has written."""
        for path in (self.data.parent, *self.data.parent.rglob("*")):
            os.chown(path, self.owner.pw_uid, self.owner.pw_gid)

    def manage(self, *arguments: str, seconds: float = 60) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [*self._prefix, sys.executable, "manage.py", *arguments],
            cwd=ROOT,
            env=self.env,
            capture_output=True,
            text=True,
            timeout=seconds,
            check=False,
        )

    def _spawn(
        self, name: str, argv: Sequence[str], env: dict[str, str], umask: int = -1
    ) -> subprocess.Popen[bytes]:
        return super()._spawn(name, [*self._prefix, *argv], env, umask)


def command_prefix(user: pwd.struct_passwd, directory: Path) -> list[str]:
    """Executes a command as the user, in the same process; empty for root."""
    if user.pw_uid == 0:
        return []
    if os.getuid() != 0 or not shutil.which("setpriv"):
        missing("a root user with setpriv", "run the tests as root")
    identity = (f"--reuid={user.pw_uid}", f"--regid={user.pw_gid}", "--clear-groups")
    execute = shlex.join(["exec", "setpriv", *identity, "--"]) + ' "$@"'
    script = "\n".join(["set -e", *_mounts(directory / "held"), execute])
    return ["unshare", "--mount", "--propagation", "private", "sh", "-c", script, "sh"]


def _mounts(hold: Path) -> list[str]:
    """Shell commands that hide everything in a closed directory but the checkout and Python."""
    needed = {Path(path).resolve() for path in (ROOT, sys.prefix, sys.base_prefix)}
    closed: dict[Path, list[Path]] = {}
    for path in needed:
        for above in reversed(path.parents):
            if not above.stat().st_mode & 0o001:
                closed.setdefault(above, []).append(path)
                break
    lines: list[list[object]] = []
    for above, paths in closed.items():
        held = {path: hold / str(len(lines) + n) for n, path in enumerate(paths)}
        for path, place in held.items():
            lines += [["mkdir", "-p", place], ["mount", "--bind", path, place]]
        lines.append(["mount", "-t", "tmpfs", "-o", "mode=755", "drover-test", above])
        for path, place in held.items():
            lines += [["mkdir", "-p", path], ["mount", "--bind", place, path]]
    return [shlex.join(map(str, line)) for line in lines]
