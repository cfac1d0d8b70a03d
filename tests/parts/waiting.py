"""Waiting for something to become true, with a limit and a message."""

import time
from collections.abc import Callable
from typing import TypeVar

T = TypeVar("T")

# A busy machine is no failure: what is awaited may take this much longer than it should.
PATIENCE = 3


def wait_for(
    what: Callable[[], T], seconds: float = 10.0, message: str | Callable[[], str] = ""
) -> T:
    """The first true answer of `what`; fails the test when there is none in time."""
    give_up_at = time.monotonic() + seconds * PATIENCE
    while not (answer := what()):
        if time.monotonic() > give_up_at:
            said = message if isinstance(message, str) else message()
            raise AssertionError(said or f"not true after {seconds * PATIENCE:g} s: {what}")
        time.sleep(0.02)
    return answer
