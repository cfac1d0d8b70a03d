"""Installs Drover as a systemd service."""

import getpass
import os
import pwd
from typing import Any

from django.core.management.base import CommandParser

from agents_app.cli import DroverCommand
from agents_app.conf import CONF
from agents_app.errors import Refused
from agents_app.stack import service_unit


class Command(DroverCommand):
    help = "Install or remove the systemd service that runs Drover with this project."
    examples = (
        ("service install --user", "A service of this user, without root."),
        ("service install --system --run-as drover", "A service of the system."),
        ("service uninstall --user", "Remove the unit."),
    )

    def add_arguments(self, parser: CommandParser) -> None:
        verbs = parser.add_subparsers(dest="verb", required=True, metavar="VERB")
        install = verbs.add_parser("install", help="Write the unit and print the next command.")
        install.add_argument("--run-as", metavar="ACCOUNT", help="The account of a system service.")
        install.add_argument("--replace", action="store_true", help="Overwrite a changed unit.")
        remove = verbs.add_parser("uninstall", help="Remove the unit.")
        for verb in (install, remove):
            kind = verb.add_mutually_exclusive_group()
            kind.add_argument("--user", action="store_true", help="Of this user (default).")
            kind.add_argument("--system", action="store_true", help="Of the system; needs root.")
            verb.add_argument("--json", action="store_true", help="Print JSON.")

    def handle(self, *, verb: str, system: bool, json: bool, **options: Any) -> None:
        if verb == "install":
            self._install(options, system=system, json=json)
        else:
            self._uninstall(system=system, json=json)

    def _install(self, options: dict[str, Any], *, system: bool, json: bool) -> None:
        unit = service_unit.build_unit(CONF, system=system, user=_account(options, system=system))
        service_unit.write_unit(unit, replace=options["replace"])
        control = f"systemctl {unit.systemctl}"
        steps = [f"{control}daemon-reload", f"{control}enable --now {service_unit.NAME}"]
        if not system:
            # Without it the service ends with the last session of the user.
            steps.append(f"loginctl enable-linger {getpass.getuser()}")
        text = "\n".join(
            [
                f"written  {unit.path}",
                f"  project  {CONF.project}",
                f"  data     {CONF.data} (variables in service.env there)",
                "next:",
                *(f"  {step}" for step in steps),
            ]
        )
        self.result(text, {"path": unit.path, "next": steps}, json=json)

    def _uninstall(self, *, system: bool, json: bool) -> None:
        path = service_unit.remove_unit(system=system)
        control = f"systemctl {'' if system else '--user '}"
        where = service_unit.unit_path(system=system)
        text = f"there is no unit {where}: nothing was removed"
        if path:
            text = (
                f"removed  {path}\nnext:\n"
                f"  {control}stop {service_unit.NAME}\n  {control}daemon-reload"
            )
        self.result(text, {"path": where, "removed": path is not None}, json=json)


def _account(options: dict[str, Any], *, system: bool) -> str:
    """The account of a system service: the given one, or the user who called sudo."""
    name = options["run_as"] or ""
    if name and not system:
        raise Refused("--run-as is for --system: a service of a user runs as that user")
    if not system:
        return ""
    name = name or os.environ.get("SUDO_USER", "")
    if name:
        try:
            pwd.getpwnam(name)
        except KeyError:
            raise Refused(
                f"there is no account {name!r} on this machine: create it first"
            ) from None
    return name
