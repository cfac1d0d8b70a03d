"""Creates, lists, disables, enables and deletes tenants, sets their projects, and rotates their
tokens."""

from collections.abc import Sized
from time import monotonic, sleep
from typing import Any

from django.core.management.base import CommandParser

from agents_app.accounts import NewToken, change_project, rotate_tokens, tenants
from agents_app.cli import DroverCommand, find_tenant
from agents_app.conf import CONF
from agents_app.errors import Refused
from agents_app.models import Tenant
from agents_app.project import sync_tenant

COLUMNS = ("tenant", "state", "agents", "scale", "created", "project")
POLL_SECONDS = 0.2
ENDING_SECONDS = CONF.grace_seconds + 10


class Command(DroverCommand):
    help = "Create, list, disable, enable or delete a tenant, set its project, rotate its tokens."
    examples = (
        ("tenant list", "All tenants."),
        ("tenant create acme --project DIR", "Create a tenant with its agents and first token."),
        ("tenant project acme DIR", "Change the directory of its agents."),
        ("tenant disable acme", "No schedule fires and no run starts."),
        ("tenant enable acme", "Enable it again."),
        ("tenant rotate acme", "Replace its API tokens."),
        ("tenant delete acme --yes", "Delete the tenant with its rows and files."),
    )

    def add_arguments(self, parser: CommandParser) -> None:
        verbs = parser.add_subparsers(dest="verb", required=True, metavar="VERB")
        listing = verbs.add_parser("list", help="List tenants.")
        listing.add_argument("--json", action="store_true", help="Print JSON.")
        texts = {
            "create": "Create a tenant; its first API token is shown once.",
            "disable": "Disable schedules, runs and API tokens of the tenant.",
            "enable": "Enable a disabled tenant.",
            "rotate": "Replace its API tokens; the new ones are shown once.",
            "delete": "Delete the tenant, its rows and files permanently; its project stays.",
        }
        for verb, text in texts.items():
            one = verbs.add_parser(verb, help=text)
            one.add_argument("name", metavar="NAME")
            one.add_argument("--json", action="store_true", help="Print JSON.")
            if verb == "delete":
                one.add_argument("--yes", action="store_true", help="Confirm the deletion.")
            elif verb == "create":
                one.add_argument("--project", metavar="DIR", help="The directory of its agents.")
        self._add_project(verbs)

    def _add_project(self, verbs: Any) -> None:
        one = verbs.add_parser("project", help="Show or change the directory of its agents.")
        one.add_argument("name", metavar="NAME")
        one.add_argument("directory", metavar="DIR", nargs="?", help="Without it: show it.")
        one.add_argument("--json", action="store_true", help="Print JSON.")

    def handle(self, *, verb: str, json: bool, name: str = "", **options: Any) -> None:
        if verb == "list":
            self._list(json=json)
        elif verb == "create":
            project = options["project"]
            tenant, token = tenants.create_tenant(name, self.by, self.now, project)
            self._show_tokens(f"tenant {tenant} created", [token], json=json)
            self._read_project(tenant)
        elif verb == "project":
            self._set_project(find_tenant(name), json=json, **options)
        elif verb == "rotate":
            made = rotate_tokens(find_tenant(name), self.by, self.now)
            self._show_tokens(f"{name}: {_count(made, 'new API token')}", made, json=json)
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
        self.remark("store the tokens now: they cannot be shown again")

    def _set_project(self, tenant: Tenant, *, directory: str | None, json: bool, **_: Any) -> None:
        if directory is not None:
            tenant.project = change_project(tenant, directory, self.by, self.now)
            self._read_project(tenant)
        where = tenant.project_directory
        text = f"{tenant}: {where or 'no project directory'}"
        self.result(text, {"tenant": tenant.name, "project": where}, json=json)

    def _read_project(self, tenant: Tenant) -> None:
        """Read the project now: its agents can run before beat has looked for it."""
        found = sync_tenant(tenant, self.now) if tenant.project else None
        if found is None:
            return
        errors = [str(one) for error in found.errors for one in error.each]
        self.remark(f"{tenant.project}: {_count(found.agents, 'agent')}, {_count(errors, 'error')}")
        for error in errors:
            self.remark(error)

    def _switch(self, tenant: Tenant, *, on: bool, json: bool) -> None:
        act = tenants.enable_tenant if on else tenants.disable_tenant
        changed = act(tenant, self.by, self.now)
        state = "enabled" if on else "disabled"
        text = f"{tenant} {'' if changed else 'was already '}{state}"
        self.result(text, {"tenant": tenant.name, "state": state, "changed": changed}, json=json)

    def _delete(self, tenant: Tenant, *, json: bool, sure: bool) -> None:
        if not sure:
            raise Refused(
                f"this deletes {tenant} with {_count(tenant.agents.all(), 'agent')}, all history "
                "and files: add --yes to confirm"
            )
        deadline = monotonic() + ENDING_SECONDS
        while tenants.close_tenant(tenant, self.by, self.now) and monotonic() < deadline:
            sleep(POLL_SECONDS)
        tenants.delete_tenant(tenant, self.by, self.now)
        self.result(f"{tenant.name} deleted", {"tenant": tenant.name, "deleted": True}, json=json)


def _count(rows: Sized, noun: str) -> str:
    return f"{len(rows)} {noun}{'' if len(rows) == 1 else 's'}"


def state_of(tenant: Tenant) -> str:
    if tenant.disabled_at:
        return "disabled"
    return "paused" if tenant.paused_at else "enabled"


def row(tenant: Tenant) -> tuple[object, ...]:
    facts = (tenant.name, state_of(tenant), tenant.agents.count(), tenant.scale)
    return *facts, tenant.created_at, tenant.project_directory or "-"


def described(tenant: Tenant) -> dict[str, object]:
    return {
        "name": tenant.name,
        "state": state_of(tenant),
        "agents": tenant.agents.count(),
        "scale": tenant.scale,
        "project": tenant.project_directory,
        "disabled_at": tenant.disabled_at,
        "created_at": tenant.created_at,
    }


def token_described(token: NewToken) -> dict[str, object]:
    same = {"id": token.row.pk, "name": token.row.name, "scope": str(token.row.scope)}
    return {"tenant": token.row.tenant.name, **same, "token": token.secret}
