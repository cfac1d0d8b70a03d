"""From a run token and the name of a signal to its handler."""

import hmac
from datetime import datetime, timedelta
from typing import Any

from agents_app.errors import DroverError, NotFound, Refused
from agents_app.models import Run
from agents_app.runs import TOKEN_PREFIX, secret_hash
from agents_app.secrets import redactor_for
from agents_app.signals.contract import Reply, Signal
from agents_app.signals.declarations import SIGNALS
from agents_app.signals.fields import Fields, read_fields

# A run over its time limit is being stopped; its signals are accepted meanwhile.
TOKEN_VALID_AFTER_DEADLINE = timedelta(seconds=60)
MAX_RUN_ID_DIGITS = 18
REFUSED = "missing or invalid run token"


class Unauthorized(DroverError):
    """The token is unknown, malformed, expired or of another run: one message for all."""

    code = "unauthorized"
    http_status = 401


class Superseded(Refused):
    """The attempt of the token has ended, and a later attempt has started."""

    code = "superseded"


def handle_signal(token: str, name: str, fields: Fields, now: datetime) -> Reply:
    """Authenticate the run, read the declared fields and call the handler."""
    signal = SIGNALS.get(name)
    run = authenticate_run(token, now)
    if signal is None:
        raise NotFound(f"there is no signal {name[:80]!r}: use {', '.join(sorted(SIGNALS))}")
    values = read_fields(signal.fields, fields)
    reply = signal.handler(run, now, **_redacted(signal, run, token, values))
    if reply.done and signal.cancel_wait is not None:
        # The end of a run also ends its calls: after it the run must not get their state.
        authenticate_run(token, now)
    return reply


def cancel_wait(token: str, name: str, fields: Fields, now: datetime) -> None:
    """The client no longer waits for a reply: the time is over, or the connection is closed."""
    run = authenticate_run(token, now)
    signal = SIGNALS.get(name)
    if signal is not None and signal.cancel_wait is not None:
        values = read_fields(signal.fields, fields)
        signal.cancel_wait(run, _redacted(signal, run, token, values))


def _redacted(signal: Signal, run: Run, token: str, values: dict[str, Any]) -> dict[str, Any]:
    """The values without the run's secrets in free text, which is stored and shown.

    Free text that was not sent costs no query, nor does a run without credentials."""
    written = [field for field in signal.fields if field.free_text and values[field.name]]
    if not written:
        return values
    redactor = redactor_for(run.tenant_id, run.agent.credentials, token)
    cleaned = {
        field.name: (redactor.clean_uri if field.is_uri else redactor.clean_text)(
            values[field.name]
        )
        for field in written
    }
    return {**values, **cleaned}


def authenticate_run(token: str, now: datetime) -> Run:
    """The running run of the token, with its agent; raises Unauthorized or Superseded."""
    run_id, _, secret = token.removeprefix(TOKEN_PREFIX).partition("_")
    well_formed = token.startswith(TOKEN_PREFIX) and run_id.isascii() and run_id.isdigit()
    run = None
    if well_formed and len(run_id) <= MAX_RUN_ID_DIGITS:
        run = Run.objects.select_related("agent").filter(pk=int(run_id)).first()
    expected = run.token_sha256 if run else ""
    if not hmac.compare_digest(secret_hash(secret), expected) or run is None:
        raise Unauthorized(REFUSED)
    if run.state != Run.State.RUNNING:
        if Run.objects.filter(work_item=run.work_item_id, pk__gt=run.pk).exists():
            raise Superseded("this attempt is over, and another one has begun")
        raise Unauthorized(REFUSED)
    if run.deadline_at is not None and now > run.deadline_at + TOKEN_VALID_AFTER_DEADLINE:
        raise Unauthorized(REFUSED)
    return run
