"""A persistent sender of webhooks that logs which deliveries were acknowledged."""

import asyncio
import hashlib
import hmac
import json
import threading
import time
from collections import Counter
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import dataclass, field

from tests.faults.real_fleet import RealFleet

SECRET = "sesame-sesame"
CONFIG = '[webhooks.gh]\ntype = "github"\nsecrets = ["env:HOOK_SECRET"]\n'
BODY = json.dumps(
    {
        "action": "opened",
        "issue": {"number": 7, "title": "It broke", "body": "x" * 1000},
        "repository": {"full_name": "acme/site"},
        "sender": {"login": "ann"},
    }
).encode()
WANTED = [{"source": "gh", "events": ["issues"]}]


def hooked(fleet: RealFleet, *agents: str, **fields: object) -> RealFleet:
    """Create a webhook source and agents that it triggers."""
    (fleet.stack.project / "config.toml").write_text(CONFIG)
    for name in agents:
        fleet.agent(name, webhooks=WANTED, **fields)
    fleet.sync()
    return fleet


def numbered(number: object) -> bytes:
    """A repeated body is a duplicate."""
    return BODY.replace(b"xxx", f"{number}".encode(), 1)


def signature(body: bytes, secret: str = SECRET) -> str:
    return f"sha256={hmac.new(secret.encode(), body, hashlib.sha256).hexdigest()}"


def request(number: object, body: bytes = BODY, secret: str = SECRET) -> bytes:
    """A signed delivery; without a body of its own, each number has another body."""
    body = numbered(number) if body is BODY else body
    head = (
        "POST /webhooks/github HTTP/1.1\r\nHost: 127.0.0.1\r\nX-GitHub-Event: issues\r\n"
        f"X-GitHub-Delivery: {number}\r\nX-Hub-Signature-256: {signature(body, secret)}\r\n"
        f"Content-Type: application/json\r\nContent-Length: {len(body)}\r\n\r\n"
    )
    return head.encode() + body


async def read_answer(reader: asyncio.StreamReader) -> tuple[int, dict[str, str], bytes]:
    head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1")
    status, *lines = head.splitlines()
    pairs = (line.partition(":") for line in lines if line)
    headers = {name.lower(): value.strip() for name, _, value in pairs}
    body = await reader.readexactly(int(headers["content-length"]))
    return int(status.split()[1]), headers, body


@dataclass
class Sender:
    """Sends each delivery with the same id until it is acknowledged."""

    port: int
    ids: Iterable[str]
    connections: int = 40
    stubborn: bool = True
    acknowledged: list[str] = field(default_factory=list)
    statuses: Counter[int] = field(default_factory=Counter)
    seconds: list[float] = field(default_factory=list)
    broken: int = 0

    def start(self) -> "Sender":
        self._left = iter(self.ids)
        self._thread = threading.Thread(target=lambda: asyncio.run(self._send_all()), daemon=True)
        self._thread.start()
        return self

    def wait(self, seconds: float) -> "Sender":
        self._thread.join(seconds)
        assert not self._thread.is_alive(), f"only {len(self.acknowledged)} acknowledged"
        return self

    async def _send_all(self) -> None:
        await asyncio.gather(*(self._connection() for _ in range(self.connections)))

    async def _connection(self) -> None:
        streams: tuple[asyncio.StreamReader, asyncio.StreamWriter] | None = None
        for identity in self._left:
            while True:
                try:
                    streams = streams or await asyncio.open_connection("127.0.0.1", self.port)
                    done = await self._send(identity, *streams)
                except (OSError, asyncio.IncompleteReadError):
                    streams, done = None, False
                    self.broken += 1
                if done or not self.stubborn:
                    break
                await asyncio.sleep(0.05)
        if streams is not None:
            with suppress(OSError):
                streams[1].close()

    async def _send(
        self, identity: str, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> bool:
        began = time.monotonic()
        writer.write(request(identity))
        status, headers, _ = await read_answer(reader)
        self.seconds.append(time.monotonic() - began)
        self.statuses[status] += 1
        if status == 200:
            self.acknowledged.append(identity)
        elif status == 503:
            assert int(headers["retry-after"]) > 0
        return status == 200


def stored(fleet: RealFleet) -> Counter[str]:
    """The number of stored deliveries for each id."""
    rows = fleet.stack.rows("SELECT delivery_id FROM drover_delivery")
    return Counter(row["delivery_id"] for row in rows)


def worked(fleet: RealFleet) -> Counter[str]:
    """The number of work items for each delivery."""
    rows = fleet.stack.rows(
        "SELECT d.delivery_id FROM drover_work_item w JOIN drover_delivery d "
        "ON w.idempotency_key = 'delivery:' || d.id || ':triage'"
    )
    return Counter(row["delivery_id"] for row in rows)
