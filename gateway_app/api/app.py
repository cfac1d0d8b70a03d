"""The API put together: its resources, its errors, its documents."""

from ninja import NinjaAPI
from ninja.openapi.schema import OpenAPISchema
from ninja.operation import Operation
from ninja.types import DictStrAny

from gateway_app.access import add_handlers
from gateway_app.api import (
    agents,
    deliveries,
    events,
    locks,
    logs,
    notifications,
    queue,
    rules,
    runs,
    schedule_acts,
    scheduler,
    signals,
    tenants,
    tokens,
)
from gateway_app.api.docs import SelfHosted
from gateway_app.api.parsing import StrictParser

DESCRIPTION = """
Everything belongs to a tenant, which is known by the token: `Authorization: Bearer ...`. A token
may `read`, `operate` (and read) or `admin` (and all else). People who are logged in to the admin
may use their session, with the CSRF token on everything but GET.

Signals are for running agents alone, with the token that Drover gave the run.

Times are seconds since 1970. Long lists come in pages: `next_cursor` of one is `cursor` of the
next. Whatever goes wrong has one shape: `{"error": {"code": ..., "message": ...}}`.

Streams are Server-Sent Events. One that breaks is resumed with `Last-Event-ID`: nothing is missed
for as long as it is kept, and nothing comes twice. After `event: error` the stream ends.
"""


class DroverAPI(NinjaAPI):
    def get_openapi_operation_id(self, operation: Operation) -> str:
        """What generated clients call their functions; no two of ours are called the same."""
        return str(operation.view_func.__name__)

    def get_openapi_schema(
        self, *, path_prefix: str | None = None, path_params: DictStrAny | None = None
    ) -> OpenAPISchema:
        """Signals are answered in front of Django, see gateway_app/signals/receive.py."""
        prefix = self.get_root_path(path_params or {}) if path_prefix is None else path_prefix
        document = super().get_openapi_schema(path_prefix=prefix)
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
        *(agents, schedule_acts, runs, logs, queue, locks, deliveries, events, notifications),
        *(rules, scheduler, tenants, tokens),
    ):
        api.add_router("", part.router)
    add_handlers(api)
    return api


API = build()
