"""How often a caller may ask: a bucket of tokens each, in this process; pure but for its lock."""

import math
import os
import threading
from collections.abc import Mapping
from dataclasses import dataclass

from agents_app.errors import ConfigError

DEFAULT_RATE, DEFAULT_BURST = 100.0, 200.0
MOST_BUCKETS = 10_000


@dataclass(slots=True)
class _Bucket:
    left: float
    at: float


class RateLimit:
    """`rate` requests a second, and `burst` of them at once after a rest."""

    def __init__(self, rate: float = DEFAULT_RATE, burst: float = DEFAULT_BURST) -> None:
        self.rate, self.burst = rate, burst
        self._buckets: dict[str, _Bucket] = {}
        self._lock = threading.Lock()

    def wait_seconds(self, who: str, now: float) -> int:
        """0 if the request may pass, which is then counted; else when to try again."""
        with self._lock:
            bucket = self._filled(who, now)
            wait = self._wait(bucket)
            bucket.left -= 0 if wait else 1
            return wait

    def look(self, who: str, now: float) -> int:
        """The same, and nothing is counted."""
        with self._lock:
            return self._wait(self._filled(who, now))

    def _wait(self, bucket: _Bucket) -> int:
        return 0 if bucket.left >= 1 else max(1, math.ceil((1 - bucket.left) / self.rate))

    def _filled(self, who: str, now: float) -> _Bucket:
        bucket = self._buckets.get(who) or self._new(who, now)
        bucket.left = min(self.burst, bucket.left + (now - bucket.at) * self.rate)
        bucket.at = now
        return bucket

    def _new(self, who: str, now: float) -> _Bucket:
        if len(self._buckets) >= MOST_BUCKETS:
            # Whoever has rested long enough to be full again is as good as new.
            rested = now - self.burst / self.rate
            self._buckets = {name: b for name, b in self._buckets.items() if b.at > rested}
        self._buckets[who] = _Bucket(self.burst, now)
        return self._buckets[who]


def read_rate_limit(env: Mapping[str, str]) -> RateLimit:
    rate = _number(env, "DROVER_API_RATE", DEFAULT_RATE)
    return RateLimit(rate, _number(env, "DROVER_API_BURST", max(DEFAULT_BURST, rate)))


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
