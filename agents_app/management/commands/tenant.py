"""Makes tenants, disables and enables them, gives them new tokens, deletes them."""

from time import monotonic, sleep
from typing import Any

from django.core.management.base import CommandParser

from agents_app.accounts import NewToken, rotate_tokens, tenants
from agents_app.cli import DroverCommand, find_tenant
from agents_app.conf import CONF
from agents_app.errors import Refused
from agents_app.models import Tenant

COLUMNS = ("tenant", "state", "agents", "scale", "since")
LOOK_EVERY_SECONDS = 0.2
ENDING_SECONDS = CONF.grace_seconds + 10


class Command(DroverCommand):
    help = "Create, list, disable, enable, rotate (its tokens) or delete a tenant."
    examples = (
        ("tenant list", "All of them."),
        ("tenant create acme", "With a first token."),
        ("tenant disable acme", "Nothing of it starts any more."),
        ("tenant enable acme", "It goes on."),
        ("tenant rotate acme", "New tokens for it."),
        ("tenant delete acme --yes", "With everything it owns."),
    )

    def add_arguments(self, parser: CommandParser) -> None:
        verbs = parser.add_subparsers(dest="verb", required=True, metavar="VERB")
        listing = verbs.add_parser("list", help="All of them.")
        listing.add_argument("--json", action="store_true", help="Print JSON, for programs.")
        texts = {
            "create": "With a first token, which is shown once.",
            "disable": "Nothing of it fires or starts, and its tokens open nothing.",
            "enable": "Its schedules fire at their next time again.",
            "rotate": "Each of its tokens is replaced; the new ones are shown once.",
            "delete": "With everything it owns, for good.",
        }
        for verb, text in texts.items():
            one = verbs.add_parser(verb, help=text)
            one.add_argument("name", metavar="NAME")
            one.add_argument("--json", action="store_true", help="Print JSON, for programs.")
            if verb == "delete":
                one.add_argument("--yes", action="store_true", help="Really.")

    def handle(self, *, verb: str, json: bool, name: str = "", **options: Any) -> None:
        if verb == "list":
            self._list(json=json)
        elif verb == "create":
            tenant, token = tenants.create_tenant(name, self.by, self.now)
            self._show_tokens(f"tenant {tenant} is made", [token], json=json)
        elif verb == "rotate":
            made = rotate_tokens(find_tenant(name), self.by, self.now)
            self._show_tokens(f"{name} has {len(made)} new tokens", made, json=json)
        elif verb == "delete":
            self._delete(find_tenant(name), json=json, sure=options["yes"])
        else:
            self._switch(find_tenant(name), on=verb == "enable", json=json)

    def _list(self, *, json: bool) -> None:
        found = list(Tenant.objects.order_by("name"))
        if json:
            self.screen.json([described(tenant) for tenant in found])
        else:
            self.screen.table(COLUMNS, [row(tenant) for tenant in found])

    def _show_tokens(self, text: str, made: list[NewToken], *, json: bool) -> None:
        if json:
            self.screen.json({"tokens": [token_described(token) for token in made]})
            return
        self.screen.say(text)
        for token in made:
            self.screen.say(f"  {token.row.name} ({token.row.scope}): {token.secret}")
        self.remark("keep them now: they cannot be shown again")

    def _switch(self, tenant: Tenant, *, on: bool, json: bool) -> None:
        act = tenants.enable_tenant if on else tenants.disable_tenant
        changed = act(tenant, self.by, self.now)
        state = "enabled" if on else "disabled"
        text = f"{tenant} {'is' if changed else 'was already'} {state}"
        self.result(text, {"tenant": tenant.name, "state": state, "changed": changed}, json=json)

    def _delete(self, tenant: Tenant, *, json: bool, sure: bool) -> None:
        if not sure:
            raise Refused(
                f"this deletes {tenant} with its {tenant.agents.count()} agents and all their "
                f"history: say --yes if you mean it"
            )
        give_up_at = monotonic() + ENDING_SECONDS
        while tenants.close_tenant(tenant, self.by, self.now) and monotonic() < give_up_at:
            sleep(LOOK_EVERY_SECONDS)
        tenants.delete_tenant(tenant, self.by, self.now)
        self.result(
            f"{tenant.name} is deleted", {"tenant": tenant.name, "deleted": True}, json=json
        )


def state_of(tenant: Tenant) -> str:
    if tenant.disabled_at:
        return "disabled"
    return "paused" if tenant.paused_at else "enabled"


def row(tenant: Tenant) -> tuple[object, ...]:
    return tenant.name, state_of(tenant), tenant.agents.count(), tenant.scale, tenant.created_at


def described(tenant: Tenant) -> dict[str, object]:
    return {
        "name": tenant.name,
        "state": state_of(tenant),
        "agents": tenant.agents.count(),
        "scale": tenant.scale,
        "disabled_at": tenant.disabled_at,
        "created_at": tenant.created_at,
    }


def token_described(token: NewToken) -> dict[str, object]:
    same = {"id": token.row.pk, "name": token.row.name, "scope": str(token.row.scope)}
    return {"tenant": token.row.tenant.name, **same, "token": token.secret}
