"""Opens the client of a work source: its credential, and requests through the guarded client."""

from collections.abc import Callable, Mapping
from datetime import datetime
from typing import Any

from agents_app.conf import CONF
from agents_app.models import Tenant, WorkSource
from agents_app.notifications import OutgoingRequest, Unreachable, send_and_wait
from agents_app.secrets import (
    credential_providing,
    how_to_set,
    parse_name,
    read_secret,
    values_of,
)
from agents_app.work_sources.kinds import (
    HttpReply,
    Send,
    SourceAccess,
    SourceClient,
    WorkSourceError,
    read_settings,
)

REQUEST_SECONDS = 15.0
LARGEST_REPLY = 8 * 1024 * 1024


def open_client(
    source: WorkSource,
    clock: Callable[[], datetime],
    sleep: Callable[[float], None],
    before_request: Callable[[], None],
) -> SourceClient:
    """Raises a WorkSourceError if the credential is not set."""
    kind, settings = read_settings(source.settings)
    access = SourceAccess(
        send=_guarded(before_request),
        now=clock,
        sleep=sleep,
        secret=_secret(source.tenant, settings),
        # A tenant without a project has no work source of a file.
        project=source.tenant.project_directory or CONF.project,
    )
    return kind.open(settings, access)


def _secret(tenant: Tenant, settings: Any) -> dict[str, str]:
    reference: str = getattr(settings, "auth", "")
    if not reference:
        return {}
    if reference.startswith(("env:", "file:")):
        found = {"value": secret} if (secret := read_secret(reference, tenant)) else {}
        remedy = "set it"
        # The variables of the environment belong to the default tenant only.
        other = credential_providing(reference[4:]) if reference.startswith("env:") else None
        if other and not found:
            found = values_of(tenant.pk, other)
            remedy = f"set the variable, or {how_to_set(parse_name(other), tenant.name)}"
    else:
        found = values_of(tenant.pk, reference)
        remedy = how_to_set(parse_name(reference))
    if not found:
        raise WorkSourceError(f"the secret {reference} of the work source is not set: {remedy}")
    return found


def _guarded(before_request: Callable[[], None]) -> Send:
    def send(method: str, url: str, headers: Mapping[str, str], body: bytes | None) -> HttpReply:
        before_request()
        request = OutgoingRequest(url, body, headers, REQUEST_SECONDS, method, LARGEST_REPLY)
        reply = send_and_wait(request, CONF.outgoing_hosts)
        if len(reply.body) >= LARGEST_REPLY:
            raise Unreachable(f"the answer has more than {LARGEST_REPLY} bytes")
        return HttpReply(reply.status, reply.headers, reply.body)

    return send
