"""Makes the tokens that programs talk to the API with, lists and revokes them."""

from typing import Any

from django.core.management.base import CommandParser

from agents_app.accounts import create_token, revoke_token
from agents_app.cli import DroverCommand, did_you_mean, find_tenant
from agents_app.errors import NotFound, Refused
from agents_app.models import ApiToken, Tenant

COLUMNS = ("#", "name", "scope", "made", "revoked")


class Command(DroverCommand):
    help = "Create, list or revoke the tokens of a tenant."
    examples = (
        ("token create dashboard --scope read", "Printed once, for a program that looks."),
        ("token list", "All of them, revoked ones too."),
        ("token revoke dashboard", "From the next request on."),
    )

    def add_arguments(self, parser: CommandParser) -> None:
        verbs = parser.add_subparsers(dest="verb", required=True, metavar="VERB")
        create = verbs.add_parser("create", help="Shown once, kept as a hash.")
        create.add_argument("name", metavar="NAME", help="What it is for.")
        create.add_argument(
            "--scope", choices=ApiToken.Scope.values, default=ApiToken.Scope.READ.value
        )
        listing = verbs.add_parser("list", help="All of them, revoked ones too.")
        revoke = verbs.add_parser("revoke", help="For good, from the next request on.")
        revoke.add_argument("token", metavar="TOKEN", help="Its number, or its name.")
        for verb in (create, listing, revoke):
            self.add_common(verb)

    def handle(self, *, verb: str, tenant: str, json: bool, **options: Any) -> None:
        owner = find_tenant(tenant)
        if verb == "create":
            self._create(owner, options["name"], options["scope"], json=json)
        elif verb == "revoke":
            self._revoke(find_token(owner, options["token"]), json=json)
        else:
            self._list(owner, json=json)

    def _create(self, tenant: Tenant, name: str, scope: str, *, json: bool) -> None:
        made = create_token(tenant, name, scope, self.by, self.now)
        # The secret alone, so that a script can keep it without cutting it out of a sentence.
        self.result(made.secret, {**described(made.row), "token": made.secret}, json=json)
        self.remark(f"token {made.row.pk} of {tenant} may {scope}; it cannot be shown again")

    def _list(self, tenant: Tenant, *, json: bool) -> None:
        found = list(tenant.tokens.order_by("pk"))
        if json:
            self.screen.json([described(token) for token in found])
        elif found:
            rows = [(t.pk, t.name, t.scope, t.created_at, t.revoked_at) for t in found]
            self.screen.table(COLUMNS, rows)
        else:
            self.screen.say(f"{tenant} has no tokens (manage.py token create NAME makes one)")

    def _revoke(self, token: ApiToken, *, json: bool) -> None:
        changed = revoke_token(token, self.by, self.now)
        text = f"token {token.pk} ({token.name}) {'is' if changed else 'was already'} revoked"
        self.result(text, {"id": token.pk, "revoked": True, "changed": changed}, json=json)


def find_token(tenant: Tenant, text: str) -> ApiToken:
    """By its number; or by its name, if only one in force has it."""
    if text.isascii() and text.isdigit() and len(text) < 19:
        found = list(tenant.tokens.filter(pk=int(text)))
    else:
        found = list(tenant.tokens.filter(name=text, revoked_at__isnull=True).order_by("pk"))
    if len(found) > 1:
        numbers = ", ".join(str(token.pk) for token in found)
        raise Refused(f"{text!r} may be one of {numbers}: write the number")
    if not found:
        guess = did_you_mean(text, tenant.tokens.values_list("name", flat=True))
        raise NotFound(f"there is no token {text!r}{guess} (manage.py token list shows them)")
    return found[0]


def described(token: ApiToken) -> dict[str, object]:
    return {
        "id": token.pk,
        "name": token.name,
        "scope": str(token.scope),
        "created_at": token.created_at,
        "revoked_at": token.revoked_at,
    }
