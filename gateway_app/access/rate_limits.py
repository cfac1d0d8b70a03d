"""Rate limits in the memory of this process: requests per caller, wrong tokens per network."""

import math
import os
import threading
import time
from collections import OrderedDict
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TypeVar

from agents_app.accounts import caller_network, token_hash
from agents_app.errors import ConfigError
from gateway_app.access.errors import TooMany

T = TypeVar("T")
DEFAULT_RATE, DEFAULT_BURST = 100.0, 200.0
# A provider sends what happened during an outage at once.
WEBHOOK_BURST = 1000.0
MOST_BUCKETS = 10_000


@dataclass(slots=True)
class _Bucket:
    left: float
    at: float


class RateLimit:
    """A token bucket per caller: `rate` requests a second, `burst` at once after a pause."""

    def __init__(self, rate: float = DEFAULT_RATE, burst: float = DEFAULT_BURST) -> None:
        self.rate, self.burst = rate, burst
        # The bucket that was not used for the longest time is the first.
        self._buckets: OrderedDict[str, _Bucket] = OrderedDict()
        self._lock = threading.Lock()

    def wait_seconds(self, caller: str, now: float) -> int:
        """0 if the request may pass, and counts it; else the seconds until the next try."""
        with self._lock:
            bucket = self._filled(caller, now)
            wait = self._wait(bucket)
            bucket.left -= 0 if wait else 1
            return wait

    def peek_seconds(self, caller: str, now: float) -> int:
        """Like `wait_seconds`, but does not count the request and makes no bucket."""
        with self._lock:
            return self._wait(self._filled(caller, now)) if caller in self._buckets else 0

    def _wait(self, bucket: _Bucket) -> int:
        return 0 if bucket.left >= 1 else max(1, math.ceil((1 - bucket.left) / self.rate))

    def _filled(self, caller: str, now: float) -> _Bucket:
        bucket = self._buckets.get(caller) or self._new(caller, now)
        self._buckets.move_to_end(caller)
        bucket.left = min(self.burst, bucket.left + (now - bucket.at) * self.rate)
        bucket.at = now
        return bucket

    def _new(self, caller: str, now: float) -> _Bucket:
        if len(self._buckets) >= MOST_BUCKETS:
            # Most likely it is full again, like a new one.
            self._buckets.popitem(last=False)
        self._buckets[caller] = _Bucket(self.burst, now)
        return self._buckets[caller]


def read_rate_limit(env: Mapping[str, str]) -> RateLimit:
    rate = _number(env, "DROVER_API_RATE", DEFAULT_RATE)
    return RateLimit(rate, _number(env, "DROVER_API_BURST", max(DEFAULT_BURST, rate)))


def read_webhook_limit(env: Mapping[str, str]) -> RateLimit:
    """The limit of each webhook source, for deliveries with a valid signature."""
    rate = _number(env, "DROVER_WEBHOOK_RATE", DEFAULT_RATE)
    return RateLimit(rate, _number(env, "DROVER_WEBHOOK_BURST", max(WEBHOOK_BURST, rate)))


def _number(env: Mapping[str, str], name: str, default: float) -> float:
    text = env.get(name) or str(default)
    try:
        value = float(text) if text.isascii() else 0.0
    except ValueError:
        value = 0.0
    if not 1 <= value <= 1e9:
        raise ConfigError(f"{name}={text!r}: expected a number of requests, 1 or more")
    return value


LIMIT = read_rate_limit(os.environ)
WEBHOOK_LIMIT = read_webhook_limit(os.environ)


# --- wrong tokens ---------------------------------------------------------------------------

# Per network: enough for a script with an old token, far too few to search for a valid one.
WRONG_TOKENS = RateLimit(rate=0.5, burst=100)
MOST_VALID = 10_000
# Hashes of tokens that were valid recently: other callers of the same network do not delay them.
# Each token is looked up for each request all the same.
_valid: set[str] = set()


def look_up_token(
    token: str, address: str, find: Callable[[str], T | None], limit: RateLimit | None = None
) -> T | None:
    """The result of `find`; raises TooMany after too many wrong tokens from the same network."""
    network, hashed, limit = caller_network(address), token_hash(token), limit or WRONG_TOKENS
    if hashed not in _valid and (wait := limit.peek_seconds(network, time.monotonic())):
        raise TooMany(wait)
    found = find(token)
    if found is None:
        _valid.discard(hashed)
        limit.wait_seconds(network, time.monotonic())
    else:
        if len(_valid) >= MOST_VALID:
            _valid.clear()
        _valid.add(hashed)
    return found


def was_valid(token: str) -> bool:
    """Whether the token was valid when it was last looked up; it may be revoked since."""
    return token_hash(token) in _valid


def forget_token(token: str) -> None:
    """Look the token up again at its next request, before the body of that request is read."""
    _valid.discard(token_hash(token))
