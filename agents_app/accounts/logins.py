"""The limit on login attempts, counted in the database for all gateways together.

An attempt is stored as a failure before the password is checked, and deleted if it was right: of
a hundred attempts at the same moment no more are checked than of a hundred in a row.

Failures are counted by name and address. A browser in which a name has logged in before is counted
for itself: failures of other clients at the same address cannot lock its user out.
"""

import hashlib
import math
import unicodedata
from datetime import datetime, timedelta
from ipaddress import IPv6Address, ip_address, ip_network

from django.db.models import QuerySet

from agents_app.database import in_transaction
from agents_app.events import journal
from agents_app.models import DEFAULT_TENANT, LoginFailure, Tenant

WINDOW = timedelta(minutes=15)
# For one name from one address, and for all names from one address, which many people may share.
MAX_FAILURES_OF_NAME, MAX_FAILURES_OF_ADDRESS = 5, 30
# Of all addresses together: senders with many addresses must not fill the journal.
MAX_RECORDED, RECORDED_WITHIN = 1000, timedelta(hours=1)


class Locked(Exception):
    """Too many failed attempts; the password was not checked."""

    def __init__(self, retry_after_seconds: int) -> None:
        super().__init__(f"too many failed attempts: try again in {retry_after_seconds} s")
        self.retry_after_seconds = retry_after_seconds


def begin_attempt(user_name: str, address: str, now: datetime, device: str = "") -> LoginFailure:
    """Store the attempt, which counts as a failure until `record_success`; raises Locked.

    `device` identifies a browser in which this name has logged in before."""
    name, network = login_name(user_name), caller_network(address)
    if device:
        network += f" (browser {hashlib.sha256(device.encode()).hexdigest()[:12]})"
    # Attempts while locked are not stored, so that they do not prolong the lock.
    if wait := _wait_seconds(LoginFailure(user_name=name, address=network), now, more=1):
        raise Locked(wait)
    attempt = in_transaction(
        lambda: LoginFailure.objects.create(user_name=name, address=network, at=now)
    )
    if wait := _wait_seconds(attempt, now):
        in_transaction(LoginFailure.objects.filter(pk=attempt.pk).delete)
        raise Locked(wait)
    return attempt


def record_failure(attempt: LoginFailure, now: datetime) -> None:
    """Keep the failure, and record it in the journal, which a later success does not change."""
    if LoginFailure.objects.filter(at__gt=now - RECORDED_WITHIN).count() <= MAX_RECORDED:
        _record_event("login.failed", attempt, now)
    if _wait_seconds(attempt, now, more=1):
        note = f": too many failed attempts, locked until {_lock_end(now)}"
        _record_event("login.locked", attempt, now, note)


def record_success(attempt: LoginFailure, now: datetime) -> None:
    """Delete the failures of this name and address, which are counted no more."""
    in_transaction(_of_name(attempt).delete)
    _record_event("login.succeeded", attempt, now)


def caller_network(address: str) -> str:
    """The address by which attempts are counted: of IPv6 the /64, which one caller usually owns."""
    try:
        found = ip_address(address)
    except ValueError:
        return login_name(address)[:40]
    if not isinstance(found, IPv6Address):
        return str(found)
    return str(found.ipv4_mapped or ip_network((int(found) >> 64 << 64, 64)))


def _wait_seconds(attempt: LoginFailure, now: datetime, more: int = 0) -> int:
    """Seconds until another attempt is allowed if `more` failures are added; 0: now."""
    of_address = LoginFailure.objects.filter(address=attempt.address)
    limits = ((_of_name(attempt), MAX_FAILURES_OF_NAME), (of_address, MAX_FAILURES_OF_ADDRESS))
    return max(_until_fewer(rows, most + 1 - more, now) for rows, most in limits)


def _until_fewer(rows: "QuerySet[LoginFailure]", count: int, now: datetime) -> int:
    """Seconds until fewer than `count` of the failures are younger than the window."""
    recent = rows.filter(at__gt=now - WINDOW).order_by("-at").values_list("at", flat=True)
    nth = recent[count - 1 : count].first()
    return math.ceil((nth + WINDOW - now).total_seconds()) if nth else 0


def _of_name(attempt: LoginFailure) -> "QuerySet[LoginFailure]":
    return LoginFailure.objects.filter(address=attempt.address, user_name=attempt.user_name)


def login_name(text: str) -> str:
    """The name by which attempts are counted: all spellings that Django accepts for one user, and
    without characters that a database or a log cannot take."""
    printable = "".join(char for char in text if char.isprintable())
    # Both twice: the lower case of some characters is not normalised, and the normal form of some
    # characters is not in lower case.
    normal = unicodedata.normalize("NFKC", unicodedata.normalize("NFKC", printable).casefold())
    return normal.casefold().strip()[:150]


def _lock_end(now: datetime) -> str:
    return f"{now + WINDOW:%H:%M} UTC"


def _record_event(name: str, attempt: LoginFailure, now: datetime, note: str = "") -> None:
    tenant = Tenant.objects.filter(name=DEFAULT_TENANT).values_list("pk", flat=True).first()
    if tenant is not None:
        # The audit has the events with an actor.
        by = attempt.user_name or "(empty name)"
        entry = journal.JournalEntry(name, now, tenant, detail=f"{attempt}{note}", actor=by)
        in_transaction(lambda: journal.record(entry))
