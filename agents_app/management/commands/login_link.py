"""Prints a link that logs a user in once."""

from typing import Any

from django.core.management.base import CommandParser
from django.urls import reverse

from agents_app.accounts import login_links
from agents_app.cli import DroverCommand
from agents_app.conf import CONF
from agents_app.installation import running_address


class Command(DroverCommand):
    help = "Print a link that logs a user in to the dashboard once, within 15 minutes."
    examples = (
        ("login_link", "A link for the user admin."),
        ("login_link anna", "A link for another user."),
    )

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("user", metavar="USER", nargs="?", default="admin")
        parser.add_argument("--json", action="store_true", help="Print JSON.")

    def handle(self, *, user: str, json: bool, **_: Any) -> None:
        now = self.now
        token = login_links.create_link_token(user, self.by, now)
        base = CONF.public_url or running_address(CONF.data) or CONF.gateway_url
        url = f"{base}{reverse('login_link', args=[token])}"
        expires_at = now + login_links.VALID_FOR
        # The address alone on stdout, for scripts.
        self.result(url, {"user": user, "url": url, "expires_at": expires_at}, json=json)
        minutes = int(login_links.VALID_FOR.total_seconds() // 60)
        self.remark(f"logs {user} in once, within {minutes} minutes")
