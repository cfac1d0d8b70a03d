"""The load of a soak: webhooks and manual runs, each repeated with its key until it is answered."""

import json
import threading
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from http.client import HTTPException

from tests.faults.hooks import Sender
from tests.parts.stack_part import PrivateStack
from tests.soak.fleet import MANUAL, TOKEN

SECONDS_BETWEEN_DELIVERIES = 0.2
SECONDS_BETWEEN_REQUESTS = 0.5
ANSWER_SECONDS = 15
# After the load has ended, the last requests may still be repeated.
END_SECONDS = 90.0


class Load:
    """Sends from `start` to `stop`; `deliveries` and `requests` have what was acknowledged."""

    def __init__(self, stack: PrivateStack) -> None:
        self._stack = stack
        self._stopping = threading.Event()
        self._sender = Sender(stack.conf.port, self._delivery_ids(), connections=3)
        self._requests = threading.Thread(target=self._request_runs, daemon=True)
        self.requests: list[str] = []

    @property
    def deliveries(self) -> list[str]:
        return self._sender.acknowledged

    @property
    def answers(self) -> dict[int, int]:
        """The number of answers to deliveries by HTTP status."""
        return dict(self._sender.statuses)

    def start(self) -> "Load":
        self._sender.start()
        self._requests.start()
        return self

    def stop(self) -> None:
        """Start nothing new, and wait until each request that was sent is acknowledged."""
        self._stopping.set()
        self._sender.wait(END_SECONDS)
        self._requests.join(END_SECONDS)
        assert not self._requests.is_alive(), f"only {len(self.requests)} requests acknowledged"

    def _delivery_ids(self) -> Iterator[str]:
        number = 0
        while not self._stopping.wait(SECONDS_BETWEEN_DELIVERIES):
            number += 1
            yield f"delivery-{number}"

    def _request_runs(self) -> None:
        number = 0
        while not self._stopping.wait(SECONDS_BETWEEN_REQUESTS):
            number += 1
            key = f"request-{number}"
            while not self._request_run(key):
                time.sleep(0.1)
            self.requests.append(key)

    def _request_run(self, key: str) -> bool:
        """Whether the run was accepted; an error of the gateway is no answer."""
        request = urllib.request.Request(
            f"{self._stack.url}/v1/agents/{MANUAL}/run",
            json.dumps({"prompt": key}).encode(),
            {
                "Authorization": f"Bearer {TOKEN}",
                "Content-Type": "application/json",
                "Idempotency-Key": key,
            },
        )
        try:
            with urllib.request.urlopen(request, timeout=ANSWER_SECONDS) as answer:
                return bool(answer.status == 202)
        except (OSError, HTTPException) as error:
            refused = isinstance(error, urllib.error.HTTPError) and error.code < 500
            assert not refused, error
            return False
