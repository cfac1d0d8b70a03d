"""The API, assembled from its resources, its error handlers and its documents."""

from typing import Any

from django.http import HttpRequest
from ninja import NinjaAPI
from ninja.openapi.schema import OpenAPISchema
from ninja.operation import Operation
from ninja.parser import Parser
from ninja.types import DictStrAny

from gateway_app.access import add_handlers, describe_problems
from gateway_app.api import (
    agents,
    audit,
    deliveries,
    events,
    firings,
    locks,
    logs,
    notifications,
    queue,
    rules,
    runs,
    scheduler,
    schedules,
    signals,
    tenants,
    tokens,
    why,
    workers,
)
from gateway_app.api.docs import SelfHosted
from gateway_app.asgi import strict_json

DESCRIPTION = """
Every object belongs to a tenant, which the token identifies: `Authorization: Bearer ...`. A token
has the scope `read`, `operate` (includes `read`) or `admin` (includes both). Users who are logged
in to the admin may use their session, with the CSRF token on all methods except GET.

Signals are for running agents only, with the token that Drover gave to the run.

Times are seconds since 1970 in UTC. If the query of a request has `times=iso`, its response or
stream has them as ISO 8601 text, such as `2026-11-18T08:00:00Z`. Long lists are paged:
`next_cursor` of one page is `cursor` of the next. All errors have one form:
`{"error": {"code": ..., "message": ...}}`.

Streams are Server-Sent Events. A broken stream is resumed with `Last-Event-ID`: no event that is
still stored is missed, and none is sent twice. The stream ends after `event: error`.
"""


class StrictParser(Parser):
    """Duplicate keys and NaN are errors."""

    def parse_body(self, request: HttpRequest) -> Any:
        return strict_json(request.body.decode("utf-8"))


class DroverAPI(NinjaAPI):
    def get_openapi_operation_id(self, operation: Operation) -> str:
        """The name of the function in generated clients; the names of all views are unique."""
        return str(operation.view_func.__name__)

    def get_openapi_schema(
        self, *, path_prefix: str | None = None, path_params: DictStrAny | None = None
    ) -> OpenAPISchema:
        """Adds errors and signals; gateway_app/signals/receive.py receives these without Django."""
        prefix = self.get_root_path(path_params or {}) if path_prefix is None else path_prefix
        document = super().get_openapi_schema(path_prefix=prefix)
        describe_problems(document)
        signals.describe(document, prefix.rstrip("/") + "/")
        return document


def build() -> DroverAPI:
    api = DroverAPI(
        title="Drover",
        version="1",
        description=DESCRIPTION,
        urls_namespace="v1",
        docs=SelfHosted(),
        parser=StrictParser(),
    )
    for part in (
        *(agents, schedules, why, firings, runs, logs, queue, locks, deliveries, events),
        *(notifications, rules, scheduler, workers, tenants, tokens, audit),
    ):
        api.add_router("", part.router)
    add_handlers(api)
    return api


API = build()
