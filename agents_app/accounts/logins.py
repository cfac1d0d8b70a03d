"""Who may try a password again, and when: counted in the database, for all gateways together.

A try is written down before the password is looked at, and struck out when it was right: of a
hundred that come at the same moment no more get through than of a hundred in a row.
"""

import math
from datetime import datetime, timedelta
from ipaddress import IPv6Address, ip_address, ip_network

from django.db.models import QuerySet

from agents_app.database import in_transaction
from agents_app.events import journal
from agents_app.models import DEFAULT_TENANT, LoginFailure, Tenant

WINDOW = timedelta(minutes=15)
# Of one name from one address; of all names from one address, behind which may be many people.
MOST_OF_A_NAME, MOST_OF_AN_ADDRESS = 5, 30


class Locked(Exception):
    """Too many tries; the password was not looked at."""

    def __init__(self, retry_after_seconds: int) -> None:
        super().__init__(f"too many tries: again in {retry_after_seconds} s")
        self.retry_after_seconds = retry_after_seconds


def begin_try(user_name: str, address: str, now: datetime) -> LoginFailure:
    """Counts as a failure until `succeed` says otherwise."""
    name, network = _clean(user_name), caller_network(address)
    # While it is locked nothing is written: the lock ends by itself, however hard they knock.
    if wait := _wait_seconds(LoginFailure(user_name=name, address=network), now, more=1):
        raise Locked(wait)
    tried = in_transaction(
        lambda: LoginFailure.objects.create(user_name=name, address=network, at=now)
    )
    if wait := _wait_seconds(tried, now):
        in_transaction(LoginFailure.objects.filter(pk=tried.pk).delete)
        raise Locked(wait)
    return tried


def fail(tried: LoginFailure, now: datetime) -> None:
    """A right password afterwards resets it; the one that locks is noted for the others."""
    if _wait_seconds(tried, now, more=1):
        _note("login.locked", f"{tried}: too many tries, until {_until(now)}", now)


def succeed(tried: LoginFailure, now: datetime) -> None:
    in_transaction(_of_name(tried).delete)
    _note("login.succeeded", str(tried), now)


def caller_network(address: str) -> str:
    """Whoever has an IPv6 address has a whole /64 of them."""
    try:
        found = ip_address(address)
    except ValueError:
        return _clean(address)[:64]
    if not isinstance(found, IPv6Address):
        return str(found)
    return str(found.ipv4_mapped or ip_network((int(found) >> 64 << 64, 64)))


def _wait_seconds(tried: LoginFailure, now: datetime, more: int = 0) -> int:
    """0 unless there are more than the limit, `more` of them still to come."""
    of_address = LoginFailure.objects.filter(address=tried.address)
    limits = ((_of_name(tried), MOST_OF_A_NAME), (of_address, MOST_OF_AN_ADDRESS))
    return max(_until_fewer(rows, most + 1 - more, now) for rows, most in limits)


def _until_fewer(rows: "QuerySet[LoginFailure]", count: int, now: datetime) -> int:
    """Seconds until fewer than `count` of them are young enough to matter."""
    recent = rows.filter(at__gt=now - WINDOW).order_by("-at").values_list("at", flat=True)
    nth = recent[count - 1 : count].first()
    return math.ceil((nth + WINDOW - now).total_seconds()) if nth else 0


def _of_name(tried: LoginFailure) -> "QuerySet[LoginFailure]":
    return LoginFailure.objects.filter(address=tried.address, user_name=tried.user_name)


def _clean(text: str) -> str:
    """Names are compared as people type them; whatever else is typed must not break a row."""
    return "".join(char for char in text.strip().lower() if char.isprintable())[:150]


def _until(now: datetime) -> str:
    return f"{now + WINDOW:%H:%M} UTC"


def _note(name: str, detail: str, now: datetime) -> None:
    tenant = Tenant.objects.filter(name=DEFAULT_TENANT).values_list("pk", flat=True).first()
    if tenant is not None:
        entry = journal.JournalEntry(name, now, tenant, detail=detail)
        in_transaction(lambda: journal.record(entry))
