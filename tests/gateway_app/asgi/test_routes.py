"""Which part of the gateway serves a path: webhooks, signals, streams, or Django."""

from typing import Any

import pytest
from starlette.routing import Match

from gateway_app.api.app import API
from scheduler_project.asgi import application


def endpoint_of(path: str) -> str:
    scope: dict[str, Any] = {"type": "http", "method": "GET", "path": path, "headers": []}
    for route in application.routes:
        match, child = route.matches(scope)
        if match is Match.FULL:
            return type(child["endpoint"]).__name__
    return type(application.default).__name__


@pytest.mark.parametrize(
    "path",
    ["/webhooks/", "/webhooks/github", "/webhooks/github/gh/secret", "/webhooks//", "/webhooks/x/"],
)
def test_every_path_below_webhooks_is_served_without_django(path):
    assert endpoint_of(path) == "Webhooks"


@pytest.mark.parametrize("path", ["/v1/signals/rerun", "/v1/signals/", "/v1/signals/a/b"])
def test_every_path_below_signals_is_served_without_django(path):
    assert endpoint_of(path) == "Signals"


def test_every_stream_of_the_api_is_kept_open_without_django():
    paths = API.get_openapi_schema()["paths"].items()
    streams = [path for path, methods in paths if "text/event-stream" in str(methods)]
    assert len(streams) == 2
    assert {endpoint_of(path.replace("{run_id}", "7")) for path in streams} == {"Streams"}


@pytest.mark.parametrize(
    "path",
    [
        *("/", "/admin/", "/healthz", "/v1", "/v1/agents", "/v1/runs/7/logs", "/v1/stream"),
        *("/webhooks", "/webhooksx", "/v1/signals", "/v1/signalsx", "/x/webhooks/github"),
        *("/v1/notifications/stream/", "/static/stream", "/webhooks/a\nb"),
    ],
)
def test_all_other_paths_go_to_django_with_a_limit_on_their_body(path):
    assert endpoint_of(path) == "BodyLimit"
