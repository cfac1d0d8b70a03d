"""Sets the password of a user of the dashboard."""

import getpass
import sys
from typing import Any

from django.core.management.base import CommandParser

from agents_app.accounts import change_password, login_links
from agents_app.cli import DroverCommand
from agents_app.errors import Refused


class Command(DroverCommand):
    help = "Set the password of a user, read from a hidden prompt or from standard input."
    examples = (
        ("password", "Ask for a new password of the user admin."),
        ("password anna", "Set the password of another user."),
    )

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("user", metavar="USER", nargs="?", default="admin")
        parser.add_argument("--json", action="store_true", help="Print JSON.")

    def handle(self, *, user: str, json: bool, **_: Any) -> None:
        login_links.find_user(user)  # before the question
        change_password(user, _read_password(), self.by, self.now)
        self.result(
            f"password of {user} changed; the sessions of {user} have ended",
            {"user": user, "changed": True},
            json=json,
        )


def _read_password() -> str:
    if not sys.stdin.isatty():
        return sys.stdin.readline().rstrip("\r\n")
    password = getpass.getpass("New password: ")
    if getpass.getpass("Repeat it: ") != password:
        raise Refused("the passwords differ: nothing was changed")
    return password
