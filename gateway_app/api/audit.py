"""/v1/audit: who did what and when, as JSON lines."""

import json
from typing import Any

from django.http import HttpRequest, HttpResponse
from ninja import Query, Router
from pydantic import Field

from agents_app.reports import AuditPeriod, read_audit
from gateway_app.access import TO_ADMINISTER, answers, caller_of
from gateway_app.api.fields import Filters, SecondsOrTime, Text, moment

router = Router(tags=["audit"])
CONTENT_TYPE = "application/x-ndjson"
_LINES: dict[str, Any] = {
    "responses": {
        200: {
            "description": "One JSON object per line, in the order of time: `at`, `id`, `tenant`, "
            "`who`, `what`, `agent`, `run_id` and `detail`",
            "content": {CONTENT_TYPE: {"schema": {"type": "string"}}},
        }
    }
}


class AuditFilters(Filters):
    since: SecondsOrTime | None = Field(
        None, description="Entries from this time: `at` of a line, or seconds since 1970."
    )
    until: SecondsOrTime | None = Field(None, description="Entries before this time.")
    after: Text = Field("", max_length=40, description="Entries after the one with this `id`.")
    limit: int = Field(1000, ge=1, le=10_000)


@router.get("/audit", response=answers(None), auth=TO_ADMINISTER, openapi_extra=_LINES)
def export_audit(request: HttpRequest, filters: Query[AuditFilters]) -> HttpResponse:
    """Changes by people, tokens, rules and runs. The tenant `default` also has logins, users and
    groups. To read on, pass the `id` of the last line as `after`. A change is stored up to some
    seconds after its time: with `until` a minute ago no entry is missed."""
    since, until = (None if s is None else moment(s) for s in (filters.since, filters.until))
    period = AuditPeriod(since, until)
    entries = read_audit(caller_of(request).tenant, period, filters.limit, filters.after)
    lines = "".join(f"{json.dumps(entry.as_json())}\n" for entry in entries)
    return HttpResponse(lines, content_type=CONTENT_TYPE)
