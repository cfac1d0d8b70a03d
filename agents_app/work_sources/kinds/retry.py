"""Which failed requests are repeated, and after how long; pure."""

import re

MAX_RETRIES = 3
FIRST_DELAY_MS, LONGEST_DELAY_MS = 1000, 30_000
# Added to the time that a source names: its clock and ours differ.
RESET_MARGIN_MS = 1000
TIMEOUT_STATUS = 408
TOO_MANY_REQUESTS = 429
LIMITED = frozenset({403, TOO_MANY_REQUESTS})
_ZERO = re.compile(r"\s*[+-]?0+(?![0-9])")


def is_rate_limited(status: int, remaining: str | None, retry_after: str | None = None) -> bool:
    """Whether an answer means that the limit of requests is used up.

    `remaining` and `retry_after` are headers. GitHub's secondary limits have only `retry-after`.
    """
    if status not in LIMITED:
        return False
    if retry_after is not None:
        return True
    return status == TOO_MANY_REQUESTS if remaining is None else bool(_ZERO.match(remaining))


def is_retryable(status: int | None, rate_limited: bool) -> bool:
    """Whether the same request may succeed later; a status of None means no answer."""
    return rate_limited or status is None or 500 <= status < 600 or status == TIMEOUT_STATUS


def backoff_ms(attempt: int, reset_ms: float | None, jitter: float) -> int:
    """The delay after a failed attempt, counted from 0; `jitter` is a fraction of the delay.

    `reset_ms` is the time until the limit of requests is renewed, if the source has named it.
    """
    if reset_ms is not None and reset_ms > 0:
        return int(min(reset_ms + RESET_MARGIN_MS, LONGEST_DELAY_MS))
    delay = min(FIRST_DELAY_MS << min(attempt, 20), LONGEST_DELAY_MS)
    return int(delay + delay * jitter)
