"""One-time login links: signed, valid for a few minutes, and used up by the login.

A link has no row. It carries a hash of the user's password hash and last login, so that every login
and every change of the password makes it invalid.
"""

from datetime import datetime, timedelta
from typing import Any

from django.contrib.auth import get_user_model
from django.contrib.auth.models import User
from django.core import signing
from django.utils.crypto import constant_time_compare, salted_hmac

from agents_app.database import in_transaction
from agents_app.errors import NotFound, Refused
from agents_app.events import journal
from agents_app.models import DEFAULT_TENANT, Tenant

VALID_FOR = timedelta(minutes=15)
_SALT = "drover.login_link"


def create_link_token(user_name: str, by: str, now: datetime) -> str:
    """The token of a new link for the user, recorded in the audit; raises NotFound or Refused."""
    user = find_user(user_name)
    if not (user.is_active and user.is_staff):
        raise Refused(
            f"the user {user_name} may not log in to the dashboard: "
            "tick Active and Staff status on the page Users"
        )
    expires_at = now + VALID_FOR
    token = signing.dumps([user.pk, _state(user), expires_at.timestamp()], salt=_SALT)
    _record("login.link_created", user, f"valid until {expires_at:%H:%M} UTC", by, now)
    return token


def find_link_user(token: str, now: datetime) -> User | None:
    """The user of a link that can still be used; does not use the link up."""
    try:
        pk, state, expires_at = signing.loads(token, salt=_SALT)
    except (signing.BadSignature, ValueError, TypeError):
        return None
    user = _users().filter(pk=pk, is_active=True, is_staff=True).first()
    if user is None or now.timestamp() >= expires_at:
        return None
    return user if constant_time_compare(state, _state(user)) else None


def use_link(token: str, address: str, now: datetime) -> User | None:
    """The user to log in; None if the link has been used, is expired or not valid.

    A conditional update of the last login decides between two uses at the same moment.
    """
    user = find_link_user(token, now)
    if user is None:
        return None
    same = _users().filter(pk=user.pk, last_login=user.last_login, password=user.password)
    if not in_transaction(lambda: same.update(last_login=now)):
        return None
    _record("login.succeeded", user, f"from {address} with a login link", user.username, now)
    user.refresh_from_db()
    return user


def find_user(name: str) -> User:
    """The user with this name; raises NotFound with the names of users."""
    found: User | None = _users().filter(username=name).first()
    if found is None:
        names = list(_users().order_by("username").values_list("username", flat=True)[:5])
        known = (
            f"the users are {', '.join(names)}" if names else "start Drover once to create admin"
        )
        raise NotFound(f"there is no user {name!r}: {known}")
    return found


def record_password_change(user: User, by: str, now: datetime) -> None:
    _record("login.password_changed", user, "", by, now)


def _users() -> Any:
    return get_user_model().objects


def _state(user: User) -> str:
    last = user.last_login.isoformat() if user.last_login else ""
    return salted_hmac(_SALT, f"{user.pk} {user.password} {last}", algorithm="sha256").hexdigest()


def _record(name: str, user: User, about: str, by: str, now: datetime) -> None:
    tenant = Tenant.objects.filter(name=DEFAULT_TENANT).values_list("pk", flat=True).first()
    if tenant is not None:
        detail = f"{user.username} {about}".strip()
        entry = journal.JournalEntry(name, now, tenant, detail=detail, actor=by)
        in_transaction(lambda: journal.record(entry))
