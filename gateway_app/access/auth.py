"""Who is asking: a bearer token, or somebody who is logged in to the admin; and what they may."""

import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, cast

from django.conf import settings
from django.http import HttpRequest
from ninja.security import APIKeyCookie, HttpBearer
from ninja.utils import check_csrf

from agents_app.accounts import find_token
from agents_app.models import DEFAULT_TENANT, ApiToken, Tenant
from gateway_app.access import guesses, rate
from gateway_app.access.problems import CsrfFailed, Forbidden, TenantDisabled, TooMany

READ, OPERATE, ADMIN = ApiToken.Scope.READ, ApiToken.Scope.OPERATE, ApiToken.Scope.ADMIN
# Each includes those before it.
SCOPES = (READ, OPERATE, ADMIN)
_ACTED_ON = ("agent", "schedule", "run", "workitem", "delivery")
_TABLES = (*_ACTED_ON, "runevent")


@dataclass(frozen=True, slots=True)
class Caller:
    """`by` is what the journal will say."""

    tenant: Tenant
    scopes: frozenset[str]
    by: str
    token_id: int | None = None

    @property
    def is_operator(self) -> bool:
        """Of the installation: the project's own tenant looks after all the others."""
        return ADMIN in self.scopes and self.tenant.name == DEFAULT_TENANT


def caller_of(request: HttpRequest) -> Caller:
    return cast("Caller", request.auth)  # type: ignore[attr-defined]


def operator_of(request: HttpRequest) -> Caller:
    caller = caller_of(request)
    if not caller.is_operator:
        raise Forbidden(f"only an admin of the tenant {DEFAULT_TENANT!r} may do this")
    return caller


# --- how they prove it ----------------------------------------------------------------------


def caller_with_token(secret: str) -> Caller | None:
    token = find_token(secret)
    return None if token is None else caller_of_token(token)


def caller_of_token(token: ApiToken) -> Caller:
    return Caller(token.tenant, up_to(token.scope), f"token {token.name}", token.pk)


def caller_with_session(request: HttpRequest) -> Caller | None:
    """People of the staff; what they may is what they may in the admin."""
    user: Any = request.user
    if not (user.is_authenticated and user.is_active and user.is_staff):
        return None
    tenant = Tenant.objects.filter(name=DEFAULT_TENANT).first()
    if tenant is None:
        return None
    return Caller(tenant, scopes_of(user), str(user.get_username()))


def up_to(scope: str) -> frozenset[str]:
    return frozenset(SCOPES[: SCOPES.index(ApiToken.Scope(scope)) + 1])


def scopes_of(user: Any) -> frozenset[str]:
    if user.is_superuser:
        return up_to(ADMIN)
    if not user.has_perms([f"agents_app.view_{table}" for table in _TABLES]):
        return frozenset()
    acts = user.has_perms([f"agents_app.change_{table}" for table in _ACTED_ON])
    return up_to(OPERATE if acts else READ)


# --- what they may --------------------------------------------------------------------------


def admit(caller: Caller, scope: str) -> Caller:
    who = f"token {caller.token_id}" if caller.token_id else caller.by
    if wait := rate.LIMIT.wait_seconds(who, time.monotonic()):
        raise TooMany(wait)
    check_rights(caller, scope)
    return caller


def check_rights(caller: Caller, scope: str) -> None:
    if caller.tenant.disabled_at is not None and not _may_enable(caller):
        raise TenantDisabled(f"the tenant {caller.tenant.name} is disabled")
    if scope not in caller.scopes:
        raise Forbidden(f"this needs the scope {str(scope)!r}")


def _may_enable(caller: Caller) -> bool:
    """Somebody must be able to, and a person who is logged in has a name."""
    return caller.is_operator and caller.token_id is None


class BearerToken(HttpBearer):
    def __init__(self, scope: str) -> None:
        super().__init__()
        self.scope = scope

    def authenticate(self, request: HttpRequest, token: str) -> Caller | None:
        caller = guesses.ask(token, request.META.get("REMOTE_ADDR", ""), caller_with_token)
        return caller and admit(caller, self.scope)


class AdminSession(APIKeyCookie):
    """Never beside an Authorization header: then cookies count for nothing.

    `right` is what a person needs besides the scope, for tables that not all who operate see."""

    param_name = settings.SESSION_COOKIE_NAME

    def __init__(self, scope: str, right: str = "") -> None:
        super().__init__()
        self.scope, self.right = scope, right

    def __call__(self, request: HttpRequest) -> Caller | None:
        if "Authorization" in request.headers or self.param_name not in request.COOKIES:
            return None
        return self.authenticate(request, None)

    def authenticate(self, request: HttpRequest, _key: str | None) -> Caller | None:
        caller = caller_with_session(request)
        if caller is not None and check_csrf(request):
            raise CsrfFailed("the CSRF token is missing or wrong: send it as X-CSRFToken")
        admitted = caller and admit(caller, self.scope)
        if admitted and self.right and not request.user.has_perm(f"agents_app.{self.right}"):
            raise Forbidden(f"this needs the permission {self.right!r}")
        return admitted


def _needs(scope: str, right: str = "") -> list[Callable[[HttpRequest], Any]]:
    return [BearerToken(scope), AdminSession(scope, right)]


TO_READ, TO_OPERATE, TO_ADMINISTER = _needs(READ), _needs(OPERATE), _needs(ADMIN)
TO_READ_RULES = _needs(READ, "view_rulestate")
TO_OPERATE_RULES = _needs(OPERATE, "change_rulestate")
