"""ASGI middleware and responses in front of Django: body limits, headers, framing, sockets.

Belongs here: code that wraps or answers any request.
Does not belong here: routes of one resource.
"""

from gateway_app.asgi.body import MEGABYTE, Body, BodyBudget, BodyError, TooLarge
from gateway_app.asgi.body_limit import ANONYMOUS_BYTES, BodyLimit, FramingCheck, is_api_path
from gateway_app.asgi.headers import SecureHeaders, read_headers
from gateway_app.asgi.parsing import strict_json
from gateway_app.asgi.protocol import END_STREAM, GatewayProtocol
from gateway_app.asgi.responses import (
    RETRY_SECONDS,
    GatewayResponse,
    body_error_response,
    error_response,
    retry_after,
)
from gateway_app.asgi.run_socket import RUN_SOCKET_USER, SIGNALS_PATH

__all__ = [
    "ANONYMOUS_BYTES",
    "END_STREAM",
    "MEGABYTE",
    "RETRY_SECONDS",
    "RUN_SOCKET_USER",
    "SIGNALS_PATH",
    "Body",
    "BodyBudget",
    "BodyError",
    "BodyLimit",
    "FramingCheck",
    "GatewayProtocol",
    "GatewayResponse",
    "SecureHeaders",
    "TooLarge",
    "body_error_response",
    "error_response",
    "is_api_path",
    "read_headers",
    "retry_after",
    "strict_json",
]
