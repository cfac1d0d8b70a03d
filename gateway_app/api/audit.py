"""/v1/audit: who did what and when, as JSON lines."""

import json
from typing import Any

from django.http import HttpRequest, HttpResponse
from ninja import Query, Router
from pydantic import Field

from agents_app.reports import AuditPeriod, read_audit
from gateway_app.access import TO_ADMINISTER, answers, caller_of
from gateway_app.api.fields import Filters, Seconds, moment

router = Router(tags=["audit"])
CONTENT_TYPE = "application/x-ndjson"
_LINES: dict[str, Any] = {
    "responses": {
        200: {
            "description": "One JSON object per line, oldest first: `at`, `id`, `tenant`, `who`, "
            "`what`, `agent`, `run_id` and `detail`",
            "content": {CONTENT_TYPE: {"schema": {"type": "string"}}},
        }
    }
}


class AuditFilters(Filters):
    since: Seconds | None = Field(None, description="Entries from this time.")
    until: Seconds | None = Field(None, description="Entries before this time.")
    limit: int = Field(1000, ge=1, le=10_000)


@router.get("/audit", response=answers(None), auth=TO_ADMINISTER, openapi_extra=_LINES)
def export_audit(request: HttpRequest, filters: Query[AuditFilters]) -> HttpResponse:
    """Changes by people, tokens, rules and runs. The tenant `default` also has logins, users and
    groups. To read on, pass the time of the last line as `since` and skip the ids that you have."""
    since, until = (None if s is None else moment(s) for s in (filters.since, filters.until))
    entries = read_audit(caller_of(request).tenant, AuditPeriod(since, until), filters.limit)
    lines = "".join(f"{json.dumps(entry.as_json())}\n" for entry in entries)
    return HttpResponse(lines, content_type=CONTENT_TYPE)
