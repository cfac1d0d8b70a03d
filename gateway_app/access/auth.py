"""Authentication by bearer token or admin session, and authorization by scope."""

import time
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime
from importlib import import_module
from typing import Any, cast

from django.conf import settings
from django.contrib.auth import get_user
from django.http import HttpRequest
from ninja.security import APIKeyCookie, HttpBearer
from ninja.utils import check_csrf

from agents_app.accounts import find_token, may_be_used_from
from agents_app.models import DEFAULT_TENANT, ApiToken, Tenant
from gateway_app.access import rate_limits
from gateway_app.access.errors import CsrfFailed, Forbidden, TenantDisabled, TooMany

READ, OPERATE, ADMIN = ApiToken.Scope.READ, ApiToken.Scope.OPERATE, ApiToken.Scope.ADMIN
# Each scope includes the scopes before it.
SCOPES = (READ, OPERATE, ADMIN)
_CHANGED_TABLES = ("agent", "schedule", "run", "workitem", "delivery")
_TABLES = (*_CHANGED_TABLES, "runevent")
# A user with these rights can make a token with every scope, and a user with every right.
_OF_ADMINS = ("agents_app.add_apitoken", "agents_app.change_tenant", "auth.change_user")


@dataclass(frozen=True, slots=True)
class Caller:
    """`by` is the name of the caller in the journal."""

    tenant: Tenant
    scopes: frozenset[str]
    by: str
    token_id: int | None = None

    @property
    def is_operator(self) -> bool:
        """Whether the caller administers the installation, with all its tenants."""
        return ADMIN in self.scopes and self.tenant.name == DEFAULT_TENANT


def caller_of(request: HttpRequest) -> Caller:
    return cast("Caller", request.auth)  # type: ignore[attr-defined]


def operator_of(request: HttpRequest) -> Caller:
    caller = caller_of(request)
    if not caller.is_operator:
        raise Forbidden(f"only an admin of the tenant {DEFAULT_TENANT!r} may do this")
    return caller


# --- authentication -------------------------------------------------------------------------


def bearer_token(authorization: str) -> str:
    """The token in the header `Authorization: Bearer TOKEN`; empty if the header has none."""
    scheme, _, token = authorization.partition(" ")
    return token.strip() if scheme.lower() == "bearer" else ""


def caller_with_token(secret: str, address: str) -> Caller | None:
    """The caller with this token; raises Forbidden if the token is for other addresses."""
    token = find_token(secret, datetime.now(UTC))
    if token is None:
        return None
    if not may_be_used_from(token, address):
        raise Forbidden(f"this token may not be used from the address {address[:80]}")
    return caller_of_token(token)


def caller_of_token(token: ApiToken) -> Caller:
    return Caller(token.tenant, scopes_up_to(token.scope), f"token {token.name}", token.pk)


def caller_with_session(request: HttpRequest) -> Caller | None:
    """A staff user with a session; the permissions in the admin decide on the scopes."""
    user: Any = request.user
    if not (user.is_authenticated and user.is_active and user.is_staff):
        return None
    tenant = Tenant.objects.filter(name=DEFAULT_TENANT).first()
    if tenant is None:
        return None
    return Caller(tenant, scopes_of(user), str(user.get_username()))


def request_with_session(session_key: str | None) -> HttpRequest:
    """A request with that session: logging out, a new password and lost permissions all count."""
    sessions: Any = import_module(settings.SESSION_ENGINE)
    request = HttpRequest()
    request.session = sessions.SessionStore(session_key)
    request.user = get_user(request)
    return request


def scopes_up_to(scope: str) -> frozenset[str]:
    return frozenset(SCOPES[: SCOPES.index(ApiToken.Scope(scope)) + 1])


def scopes_of(user: Any) -> frozenset[str]:
    if user.is_superuser or user.has_perms(_OF_ADMINS):
        return scopes_up_to(ADMIN)
    if not user.has_perms([f"agents_app.view_{table}" for table in _TABLES]):
        return frozenset()
    may_change = user.has_perms([f"agents_app.change_{table}" for table in _CHANGED_TABLES])
    return scopes_up_to(OPERATE if may_change else READ)


# --- authorization --------------------------------------------------------------------------


def admit(caller: Caller, scope: str) -> Caller:
    name = f"token {caller.token_id}" if caller.token_id else caller.by
    if wait := rate_limits.LIMIT.wait_seconds(name, time.monotonic()):
        raise TooMany(wait)
    check_rights(caller, scope)
    return caller


def check_rights(caller: Caller, scope: str) -> None:
    if caller.tenant.disabled_at is not None and not _may_enable(caller):
        raise TenantDisabled(f"the tenant {caller.tenant.name} is disabled")
    if scope not in caller.scopes:
        raise Forbidden(f"this needs the scope {str(scope)!r}")


def _may_enable(caller: Caller) -> bool:
    """A disabled default tenant must remain manageable, by a user whose name the journal has."""
    return caller.is_operator and caller.token_id is None


class BearerToken(HttpBearer):
    def __init__(self, scope: str) -> None:
        super().__init__()
        self.scope = scope

    def authenticate(self, request: HttpRequest, token: str) -> Caller | None:
        address = request.META.get("REMOTE_ADDR", "")
        caller = rate_limits.look_up_token(
            token, address, lambda secret: caller_with_token(secret, address)
        )
        return caller and admit(caller, self.scope)


class AdminSession(APIKeyCookie):
    """Ignored if the request has an Authorization header.

    `permission` is needed besides the scope, for tables that not every operator may see."""

    param_name = settings.SESSION_COOKIE_NAME

    def __init__(self, scope: str, permission: str = "") -> None:
        super().__init__()
        self.scope, self.permission = scope, permission

    def __call__(self, request: HttpRequest) -> Caller | None:
        if "Authorization" in request.headers or self.param_name not in request.COOKIES:
            return None
        return self.authenticate(request, None)

    def authenticate(self, request: HttpRequest, _key: str | None) -> Caller | None:
        caller = caller_with_session(request)
        if caller is not None and check_csrf(request):
            raise CsrfFailed("the CSRF token is missing or wrong: send it as X-CSRFToken")
        admitted = caller and admit(caller, self.scope)
        if (
            admitted
            and self.permission
            and not request.user.has_perm(f"agents_app.{self.permission}")
        ):
            raise Forbidden(f"this needs the permission {self.permission!r}")
        return admitted


def _needs(scope: str, permission: str = "") -> list[Callable[[HttpRequest], Any]]:
    return [BearerToken(scope), AdminSession(scope, permission)]


TO_READ, TO_OPERATE, TO_ADMINISTER = _needs(READ), _needs(OPERATE), _needs(ADMIN)
TO_READ_RULES = _needs(READ, "view_rulestate")
TO_OPERATE_RULES = _needs(OPERATE, "change_rulestate")
