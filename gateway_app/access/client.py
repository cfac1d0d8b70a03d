"""The client of a request, by which rate limits and shares of memory are counted."""

from functools import lru_cache

from starlette.types import Scope

from agents_app.accounts import caller_network
from gateway_app.asgi import RUN_SOCKET_USER


def client_of(scope: Scope) -> str:
    """The network of the sender; the server has replaced the address of a trusted proxy.

    On the socket of runs, all processes of one user of this host count as one client."""
    if RUN_SOCKET_USER in scope:
        return f"run socket {scope[RUN_SOCKET_USER]}"
    client = scope.get("client")
    return _network(client[0]) if client else ""


_network = lru_cache(maxsize=4096)(caller_network)
