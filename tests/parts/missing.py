"""Skips or fails a test that needs a program which is not installed."""

import os
from typing import NoReturn

import pytest


def missing(part: str, command: str) -> NoReturn:
    """Skip with the command that installs it; fail where DROVER_REQUIRE_ALL is set."""
    message = f"{part} is missing; install it with: {command}"
    if os.environ.get("DROVER_REQUIRE_ALL") == "1":
        pytest.fail(message, pytrace=False)
    pytest.skip(message)
