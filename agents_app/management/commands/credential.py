"""Sets, lists and removes credentials, and encrypts them with a new key."""

import os
from typing import Any

from django.core.management.base import CommandParser

from agents_app.cli import DroverCommand, find_tenant, read_values
from agents_app.conf import CONF, PROGRAM
from agents_app.errors import Refused
from agents_app.models import Credential, Tenant
from agents_app.secrets import (
    CREDENTIAL_TYPES,
    Resealed,
    find_credential,
    name_of,
    parse_name,
    remove_credential,
    reseal_all,
    sealing,
    set_credential,
)

COLUMNS = ("credential", "changed", "by", "agents")


class Command(DroverCommand):
    help = "Set, list, remove or re-encrypt the credentials of agents."
    examples = (
        ("credential set claude --file key.txt", "Read the value from a file."),
        ("credential list", "Names, dates, and the agents that declare them."),
        ("credential remove claude", "Remove it; runs that need it fail."),
        ("credential rotate --new-key", "Create a key and encrypt all credentials with it."),
    )

    def add_arguments(self, parser: CommandParser) -> None:
        verbs = parser.add_subparsers(dest="verb", required=True, metavar="VERB")
        known = ", ".join(CREDENTIAL_TYPES)
        setting = verbs.add_parser("set", help="Set a value from a file, a pipe or a prompt.")
        setting.add_argument("name", metavar="TYPE[:INSTANCE]", help=f"{known}, or a custom name.")
        setting.add_argument("--file", metavar="PATH", help="File with the value.")
        listing = verbs.add_parser("list", help="List names, dates and agents.")
        remove = verbs.add_parser("remove", help="Remove it; runs that need it fail.")
        remove.add_argument("name", metavar="TYPE[:INSTANCE]")
        rotate = verbs.add_parser("rotate", help="Encrypt all credentials with the newest key.")
        rotate.add_argument("--new-key", action="store_true", help="Create a new key first.")
        for verb in (setting, listing, remove, rotate):
            self.add_common(verb)

    def handle(self, *, verb: str, tenant: str, json: bool, **options: Any) -> None:
        if verb == "rotate":
            self._rotate(json=json, new_key=options["new_key"])
        elif verb == "set":
            self._set(find_tenant(tenant), options["name"], options["file"], json=json)
        elif verb == "remove":
            self._remove(find_credential(find_tenant(tenant), options["name"]), json=json)
        else:
            self._list(find_tenant(tenant), json=json)

    def _set(self, tenant: Tenant, text: str, file: str | None, *, json: bool) -> None:
        name = parse_name(text)
        is_new = set_credential(tenant, name, read_values(name, file), self.by, self.now)
        text = f"{name} {'set' if is_new else 'replaced'}; used by runs that start from now on"
        self.result(text, {"credential": str(name), "new": is_new}, json=json)

    def _list(self, tenant: Tenant, *, json: bool) -> None:
        found = list(tenant.credentials.order_by("type", "instance"))
        users = users_of(tenant)
        if json:
            self.screen.json([described(one, users) for one in found])
        elif found:
            self.screen.table(COLUMNS, [row(one, users) for one in found])
        else:
            self.screen.say(f"{tenant} has no credentials (set one with {PROGRAM} credential set)")

    def _remove(self, credential: Credential, *, json: bool) -> None:
        name = str(name_of(credential))
        removed = remove_credential(credential, self.by, self.now)
        self.result(f"{name} removed", {"credential": name, "removed": removed}, json=json)

    def _rotate(self, *, json: bool, new_key: bool) -> None:
        if new_key:
            sealing.add_key(os.environ, CONF.data)
        done = reseal_all(lambda what, count: self.remark(f"{what}: {count} encrypted"))
        counts = ", ".join(f"{one.done} {what}" for what, one in done.items())
        self.result(f"encrypted with the newest key: {counts}", rotated(done), json=json)
        if broken := [name for one in done.values() for name in one.broken]:
            raise Refused(
                f"no key decrypts {', '.join(broken)}: restore the old key, or set them again"
            )


def users_of(tenant: Tenant) -> dict[str, list[str]]:
    """The agents that declare each credential."""
    users: dict[str, list[str]] = {}
    for agent in tenant.agents.order_by("name"):
        for text in dict.fromkeys((*agent.credentials, *agent.hook_credentials)):
            users.setdefault(str(parse_name(text)), []).append(agent.name)
    return users


def row(credential: Credential, users: dict[str, list[str]]) -> tuple[object, ...]:
    name = str(name_of(credential))
    who = ", ".join(users.get(name, [])) or "-"
    return name, credential.changed_at, credential.changed_by, who


def described(credential: Credential, users: dict[str, list[str]]) -> dict[str, object]:
    name = name_of(credential)
    return {
        "credential": str(name),
        "type": name.type,
        "instance": name.instance,
        "created_at": credential.created_at,
        "changed_at": credential.changed_at,
        "changed_by": credential.changed_by,
        "agents": users.get(str(name), []),
    }


def rotated(done: dict[str, Resealed]) -> dict[str, object]:
    return {
        what.replace(" ", "_"): {"sealed": one.done, "broken": list(one.broken)}
        for what, one in done.items()
    }
