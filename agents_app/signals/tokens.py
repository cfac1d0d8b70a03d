"""The token that a run proves itself with: whose it is, and whether it still counts."""

import hmac
from datetime import datetime, timedelta

from agents_app.errors import DroverError, Refused
from agents_app.models import Run
from agents_app.runs import TOKEN_PREFIX, secret_hash

# A run that is over its time is being ended; what it says meanwhile still counts.
TOKEN_OUTLIVES = timedelta(seconds=60)
LONGEST_KEY = 18
REFUSED = "missing or invalid run token"


class Unauthorized(DroverError):
    """The token is unknown, malformed, expired or another's: all alike."""

    code = "unauthorized"
    http_status = 401


class Superseded(Refused):
    """The attempt that the token belongs to is over, and another one has begun."""

    code = "superseded"


def run_of(token: str, now: datetime) -> Run:
    number_, _, secret = token.removeprefix(TOKEN_PREFIX).partition("_")
    known = token.startswith(TOKEN_PREFIX) and number_.isascii() and number_.isdigit()
    run = None
    if known and len(number_) <= LONGEST_KEY:
        run = Run.objects.select_related("agent").filter(pk=int(number_)).first()
    expected = run.token_sha256 if run else ""
    if not hmac.compare_digest(secret_hash(secret), expected) or run is None:
        raise Unauthorized(REFUSED)
    if run.state != Run.State.RUNNING:
        if Run.objects.filter(work_item=run.work_item_id, pk__gt=run.pk).exists():
            raise Superseded("this attempt is over, and another one has begun")
        raise Unauthorized(REFUSED)
    if run.deadline_at is not None and now > run.deadline_at + TOKEN_OUTLIVES:
        raise Unauthorized(REFUSED)
    return run
