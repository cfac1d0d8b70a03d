"""What happens to a test whose real part is not installed."""

import os
from typing import NoReturn

import pytest


def missing(part: str, command: str) -> NoReturn:
    """Skips with the command that installs it; on a machine that must have all parts, fails."""
    message = f"{part} is missing; install it with: {command}"
    if os.environ.get("DROVER_REQUIRE_ALL") == "1":
        pytest.fail(message, pytrace=False)
    pytest.skip(message)
