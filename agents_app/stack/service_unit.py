"""The systemd unit of an installation: its text, and where it is written."""

import os
import shutil
import sys
from dataclasses import dataclass
from pathlib import Path

from agents_app.conf import ROOT, Conf
from agents_app.errors import Refused

NAME = "drover.service"
# An event loop that has not answered for so long hangs; systemd starts the service again.
WATCHDOG_SECONDS = 60
_FORBIDDEN = frozenset('\n\r"\\%$')

UNIT = """\
# Written by `service install`; `service uninstall` removes it.
[Unit]
Description=Drover, fleets of agents ({project})
Documentation=man:systemd.service(5)
After=network-online.target
Wants=network-online.target

[Service]
Type=notify
NotifyAccess=main
ExecStart={command}
WorkingDirectory={project}
Environment="DROVER_PROJECT={project}"
Environment="DROVER_DATA={data}"
# Further settings and secrets, a variable a line; the file may be missing.
EnvironmentFile=-{data}/service.env
{user}# The supervisor reports from its event loop every half of this time.
WatchdogSec={watchdog}
Restart=always
RestartSec=2
# The first start creates the database.
TimeoutStartSec=10min
# SIGTERM lets running agents finish; then they are stopped.
KillMode=mixed
TimeoutStopSec=15min
LimitNOFILE=65536
# Agents run in a sandbox of their own (Landlock, namespaces, control groups). Options that set
# NoNewPrivileges for agents of other users, or that forbid namespaces, would break it.
Delegate=yes
UMask=0077
{hardening}
[Install]
WantedBy={target}
"""
# Only the service manager of the system may set these. /home and /tmp stay as they are: agents may
# name files there.
_SYSTEM_HARDENING = """\
ProtectClock=yes
ProtectKernelLogs=yes
ProtectKernelModules=yes
RestrictRealtime=yes
LockPersonality=yes
"""


@dataclass(frozen=True, slots=True)
class ServiceUnit:
    path: Path
    text: str
    # The arguments of systemctl for this kind of service.
    systemctl: str


def unit_path(*, system: bool) -> Path:
    if system:
        return Path("/etc/systemd/system") / NAME
    config = os.environ.get("XDG_CONFIG_HOME") or Path.home() / ".config"
    return Path(config) / "systemd" / "user" / NAME


def build_unit(conf: Conf, *, system: bool, user: str = "") -> ServiceUnit:
    """The unit for the settings; `user` is the account of a system service."""
    command = [sys.executable, str(ROOT / "manage.py"), "up"]
    if Path(sys.argv[0]).name == "drover" and (program := shutil.which(sys.argv[0])):
        command = [str(Path(program).absolute()), "up"]
    for path in (*command, str(conf.project), str(conf.data)):
        if _FORBIDDEN & set(path):
            raise Refused(f"{path!r}: a systemd unit cannot have this path; move it")
    text = UNIT.format(
        project=conf.project,
        data=conf.data,
        command=" ".join(f'"{word}"' if " " in word else word for word in command),
        user=f"User={user}\n" if system and user else "",
        watchdog=WATCHDOG_SECONDS,
        hardening=_SYSTEM_HARDENING if system else "",
        target="multi-user.target" if system else "default.target",
    )
    return ServiceUnit(unit_path(system=system), text, "" if system else "--user ")


def write_unit(unit: ServiceUnit, *, replace: bool) -> None:
    """Write the file; an existing file with another text is replaced only if asked for."""
    if unit.path.exists() and not replace and unit.path.read_text(encoding="utf-8") != unit.text:
        raise Refused(f"{unit.path} exists with another content: add --replace to overwrite it")
    try:
        unit.path.parent.mkdir(parents=True, exist_ok=True)
        unit.path.write_text(unit.text, encoding="utf-8")
        unit.path.chmod(0o644)
    except OSError as error:
        raise Refused(
            f"cannot write {unit.path}: {error.strerror}. "
            "A system service needs root; --user installs a service of this user."
        ) from None


def remove_unit(*, system: bool) -> Path | None:
    """Remove the file; None if there is none."""
    path = unit_path(system=system)
    try:
        path.unlink()
    except FileNotFoundError:
        return None
    except OSError as error:
        raise Refused(f"cannot remove {path}: {error.strerror}. Run it as root.") from None
    return path
