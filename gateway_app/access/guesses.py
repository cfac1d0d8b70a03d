"""Tokens that are not known, counted by where they come from: nobody tries them all."""

import time
from collections.abc import Callable
from typing import TypeVar

from agents_app.accounts import caller_network, token_hash
from gateway_app.access.problems import TooMany
from gateway_app.access.rate import RateLimit

T = TypeVar("T")
# Of one address: a script with an old token may go wrong for a while, a search takes for ever.
WRONG = RateLimit(rate=0.5, burst=100)
MOST_KNOWN = 10_000
# Tokens that were right here lately. They are not held up by somebody else behind their address,
# and are looked up each time all the same.
_right: set[str] = set()


def ask(token: str, address: str, find: Callable[[str], T | None]) -> T | None:
    """What `find` knows of the token, unless too many from there were unknown to it."""
    network, hashed = caller_network(address), token_hash(token)
    if hashed not in _right and (wait := WRONG.look(network, time.monotonic())):
        raise TooMany(wait)
    found = find(token)
    if found is None:
        _right.discard(hashed)
        WRONG.wait_seconds(network, time.monotonic())
    else:
        if len(_right) >= MOST_KNOWN:
            _right.clear()
        _right.add(hashed)
    return found
