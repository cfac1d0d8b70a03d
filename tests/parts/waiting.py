"""Waiting for something to become true, with a limit and a message."""

import time
from collections.abc import Callable
from typing import TypeVar

T = TypeVar("T")


def wait_for(what: Callable[[], T], seconds: float = 10.0, message: str = "") -> T:
    """The first true answer of `what`; fails the test when there is none in time."""
    give_up_at = time.monotonic() + seconds
    while not (answer := what()):
        if time.monotonic() > give_up_at:
            raise AssertionError(message or f"not true after {seconds:g} s: {what}")
        time.sleep(0.02)
    return answer
