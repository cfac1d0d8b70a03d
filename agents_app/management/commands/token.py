"""Creates, lists and revokes API tokens."""

import sys
from typing import Any
from zoneinfo import ZoneInfo

from django.core.management.base import CommandParser

from agents_app.accounts import create_token, revoke_token
from agents_app.cli import DroverCommand, find_tenant
from agents_app.clock import HOST_ZONE
from agents_app.conf import PROGRAM
from agents_app.errors import NotFound, Refused
from agents_app.models import ApiToken, Tenant
from agents_app.names import did_you_mean
from agents_app.triggers import moment_of

SCOPES = {
    ApiToken.Scope.READ.value: "read everything of the tenant",
    ApiToken.Scope.OPERATE.value: "read, and run, stop, pause and schedule agents",
    ApiToken.Scope.ADMIN.value: "operate, and manage tokens and remove agents",
}
COLUMNS = ("#", "name", "scope", "created", "expires", "addresses", "revoked")


class Command(DroverCommand):
    help = "Create, list or revoke API tokens."
    examples = (
        ("token create dashboard --scope read", "Create a read-only token and print it once."),
        (
            "token create ci --scope operate --expires 'in 90 days' --address 203.0.113.0/24",
            "Create a token for one network that expires.",
        ),
        ("token list", "All tokens, including revoked ones."),
        ("token revoke dashboard", "Refuse the token from now on."),
    )

    def add_arguments(self, parser: CommandParser) -> None:
        verbs = parser.add_subparsers(dest="verb", required=True, metavar="VERB")
        create = verbs.add_parser(
            "create", help="Create a token; it is shown once and stored as a hash."
        )
        create.add_argument("name", metavar="NAME", help="Name of the token.")
        create.add_argument(
            "--scope",
            choices=SCOPES,
            help="What its bearer may do; required unless a terminal can be asked.",
        )
        create.add_argument(
            "--expires", metavar="TIME", help="When it expires: in 90 days, 2027-01-31 (never)."
        )
        create.add_argument(
            "--address",
            action="append",
            default=[],
            metavar="NETWORK",
            help="An address or network that may use it; repeat for several (default: all).",
        )
        listing = verbs.add_parser("list", help="List tokens, including revoked ones.")
        revoke = verbs.add_parser("revoke", help="Revoke a token permanently.")
        revoke.add_argument("token", metavar="TOKEN", help="Number or name of the token.")
        for verb in (create, listing, revoke):
            self.add_common(verb)

    def handle(self, *, verb: str, tenant: str, json: bool, **options: Any) -> None:
        owner = find_tenant(tenant)
        if verb == "create":
            self._create(owner, options, json=json)
        elif verb == "revoke":
            self._revoke(find_token(owner, options["token"]), json=json)
        else:
            self._list(owner, json=json)

    def _create(self, tenant: Tenant, options: dict[str, Any], *, json: bool) -> None:
        now, expires = self.now, options["expires"]
        scope = options["scope"] or self._ask_scope()
        made = create_token(
            *(tenant, options["name"], scope, self.by, now),
            expires_at=moment_of("--expires", expires, now, ZoneInfo(HOST_ZONE))
            if expires
            else None,
            addresses=options["address"],
        )
        # The secret alone on stdout, for scripts.
        self.result(made.secret, {**described(made.row), "token": made.secret}, json=json)
        self.remark(
            f"token {made.row.pk} of {tenant} with scope {scope} created; it cannot be shown again"
        )

    def _ask_scope(self) -> str:
        """On stderr, because stdout has only the secret."""
        if not sys.stdin.isatty():
            raise Refused(f"--scope is required: {', '.join(SCOPES)}")
        for scope, meaning in SCOPES.items():
            self.remark(f"  {scope:8} {meaning}")
        self.stderr.write("Scope: ", ending="")
        self.stderr.flush()
        answer = sys.stdin.readline().strip()
        if answer not in SCOPES:
            raise Refused(f"{answer[:80]!r} is not a scope: use {', '.join(SCOPES)}")
        return answer

    def _list(self, tenant: Tenant, *, json: bool) -> None:
        found = list(tenant.tokens.order_by("pk"))
        if json:
            self.screen.json([described(token) for token in found])
        elif found:
            rows = [
                (t.pk, t.name, t.scope, t.created_at, t.expires_at, _places(t), t.revoked_at)
                for t in found
            ]
            self.screen.table(COLUMNS, rows)
        else:
            self.screen.say(
                f"{tenant} has no API tokens (create one with {PROGRAM} token create NAME)"
            )

    def _revoke(self, token: ApiToken, *, json: bool) -> None:
        changed = revoke_token(token, self.by, self.now)
        text = f"token {token.pk} ({token.name}) {'' if changed else 'was already '}revoked"
        self.result(text, {"id": token.pk, "revoked": True, "changed": changed}, json=json)


def find_token(tenant: Tenant, text: str) -> ApiToken:
    """By number, or by name if exactly one valid token has it."""
    if text.isascii() and text.isdigit() and len(text) < 19:
        found = list(tenant.tokens.filter(pk=int(text)))
    else:
        found = list(tenant.tokens.filter(name=text, revoked_at__isnull=True).order_by("pk"))
    if len(found) > 1:
        numbers = ", ".join(str(token.pk) for token in found)
        raise Refused(f"{text!r} is ambiguous: use one of the numbers {numbers}")
    if not found:
        guess = did_you_mean(text, tenant.tokens.values_list("name", flat=True))
        raise NotFound(f"there is no token {text!r}{guess} ({PROGRAM} token list shows the tokens)")
    return found[0]


def _places(token: ApiToken) -> str:
    return ", ".join(token.addresses) or "all"


def described(token: ApiToken) -> dict[str, object]:
    return {
        "id": token.pk,
        "name": token.name,
        "scope": str(token.scope),
        "created_at": token.created_at,
        "revoked_at": token.revoked_at,
        "expires_at": token.expires_at,
        "addresses": token.addresses,
    }
