"""Waiting for something to become true, with a limit and a message."""

import time
from collections.abc import Callable
from typing import TypeVar

T = TypeVar("T")

# A busy machine may need this many times the expected time.
BUSY_FACTOR = 3


def wait_for(
    what: Callable[[], T], seconds: float = 10.0, message: str | Callable[[], str] = ""
) -> T:
    """The first true result of `what`; fails the test if there is none in time."""
    give_up_at = time.monotonic() + seconds * BUSY_FACTOR
    while not (answer := what()):
        if time.monotonic() > give_up_at:
            said = message if isinstance(message, str) else message()
            raise AssertionError(said or f"not true after {seconds * BUSY_FACTOR:g} s: {what}")
        time.sleep(0.02)
    return answer
