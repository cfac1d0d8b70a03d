"""What the HTTP API says of a database: read from version 0.1.0 and, after an upgrade, again.

The answers of version 0.1.0 are kept in data/expected.json; a later version may add fields.
"""

import hashlib
import json
import urllib.request
from typing import Any

Answers = dict[str, Any]
WORK_STATES = ("queued", "admitted", "done", "failed", "dropped", "cleared")
# Of longer logs and longer lines the sum is kept.
MOST_LINES, LONGEST_LINE = 100, 1000


class Client:
    """One token at one gateway."""

    def __init__(self, url: str, token: str) -> None:
        self.url, self.token = url, token

    def get(self, path: str) -> Any:
        return json.loads(self.read(path))

    def read(self, path: str) -> bytes:
        return self._send(urllib.request.Request(f"{self.url}{path}"))

    def post(self, path: str, body: Any) -> Any:
        headers = {"Content-Type": "application/json"}
        data = json.dumps(body).encode()
        return json.loads(self._send(urllib.request.Request(f"{self.url}{path}", data, headers)))

    def _send(self, request: urllib.request.Request) -> bytes:
        request.add_header("Authorization", f"Bearer {self.token}")
        with urllib.request.urlopen(request, timeout=20) as answer:
            return bytes(answer.read())


def read_answers(client: Client) -> Answers:
    """All that belongs to the tenant of the token, by id."""
    runs = by_id(client.get("/v1/runs?limit=200")["runs"])
    deliveries = client.get("/v1/deliveries?limit=200")["deliveries"]
    work = [client.get(f"/v1/queue?limit=200&state={state}")["items"] for state in WORK_STATES]
    return {
        "runs": runs,
        "lines": {key: lines_of(client, key) for key, run in runs.items() if run["output_bytes"]},
        "schedules": by_id(client.get("/v1/schedules?limit=200")["schedules"]),
        "deliveries": by_id(client.get(f"/v1/deliveries/{each['id']}") for each in deliveries),
        "work": by_id(item for items in work for item in items),
        "agents": {one["name"]: one for one in client.get("/v1/agents?limit=200")["agents"]},
    }


def lines_of(client: Client, run: str) -> Any:
    """The numbered lines of a log; of a long log how many there are, and their sum."""
    shown = client.get(f"/v1/runs/{run}/logs?limit=10000")["lines"]
    lines = [f"{x['number']} {x['at']:.6f} {x['stream']} {short(x['text'])}" for x in shown]
    if len(lines) <= MOST_LINES:
        return lines
    return {"lines": len(lines), "sha256": sum_of("\n".join(lines))}


def short(text: str) -> str:
    return text if len(text) <= LONGEST_LINE else f"({len(text)} characters, {sum_of(text)})"


def sum_of(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()


def by_id(found: Any) -> Answers:
    return {str(each["id"]): each for each in found}
