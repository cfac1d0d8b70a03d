"""ASGI middleware: body limits, headers, framing, answers in front of Django.

Belongs here: code that wraps or answers a request.
Does not belong here: routes of one resource.
"""

from gateway_app.asgi.answers import (
    Answer,
    bad_body,
    error_answer,
    too_many_streams,
    unavailable,
)
from gateway_app.asgi.body import App, Body, BodyError, Budget, Gone, Message, Receive, Send
from gateway_app.asgi.body_limit import Bounded
from gateway_app.asgi.framing import OneLength
from gateway_app.asgi.headers import SecureHeaders, read_headers
from gateway_app.asgi.parsing import strict_json
from gateway_app.asgi.protocol import ENDING, ImpatientProtocol
from gateway_app.asgi.runs_socket import SIGNALS, SignalsOnly

__all__ = [
    "ENDING",
    "SIGNALS",
    "Answer",
    "App",
    "Body",
    "BodyError",
    "Bounded",
    "Budget",
    "Gone",
    "ImpatientProtocol",
    "Message",
    "OneLength",
    "Receive",
    "SecureHeaders",
    "Send",
    "SignalsOnly",
    "bad_body",
    "error_answer",
    "read_headers",
    "strict_json",
    "too_many_streams",
    "unavailable",
]
