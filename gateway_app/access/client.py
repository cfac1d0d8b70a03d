"""The client of a request, by which rate limits and shares of memory are counted."""

from functools import lru_cache

from starlette.types import Scope

from agents_app.accounts import caller_network
from gateway_app.asgi import FROM_RUN_SOCKET

RUN_SOCKET_CLIENT = "run socket"


def client_of(scope: Scope) -> str:
    """The network of the sender; the server has replaced the address of a trusted proxy.

    All runs on this host share the socket of runs and count as one client."""
    if scope.get(FROM_RUN_SOCKET):
        return RUN_SOCKET_CLIENT
    client = scope.get("client")
    return _network(client[0]) if client else ""


_network = lru_cache(maxsize=4096)(caller_network)
