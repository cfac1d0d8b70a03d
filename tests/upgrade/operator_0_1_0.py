"""The commands, requests and queries by which the scenario acts on a Drover of version 0.1.0."""

import hashlib
import hmac
import json
import urllib.error
import urllib.request
from datetime import UTC, datetime
from typing import Any

ENDED = "SELECT 1 FROM drover_run WHERE agent_id = ? AND state = ?"


class Operator:
    """Acts on a running stack; `kept` holds facts that are in no row, such as tokens."""

    def __init__(self, stack: Any) -> None:
        self.stack = stack
        self.kept: dict[str, Any] = {}
        found = stack.rows("SELECT id, name FROM drover_agent")
        self.agents: dict[str, int] = {row["name"]: row["id"] for row in found}

    def manage(self, *arguments: str, code: int | None = 0) -> str:
        done = self.stack.manage(*arguments)
        assert code is None or done.returncode == code, (arguments, done.stdout, done.stderr)
        return str(done.stdout)

    def api(self, method: str, path: str, body: Any = None, token: str = "", **headers: str) -> Any:
        token = token or self.kept["tokens"]["operator"]
        headers |= {"Authorization": f"Bearer {token}", "Content-Type": "application/json"}
        data = None if body is None else json.dumps(body).encode()
        return json.loads(self.send(path, data, headers, method=method))

    def send(
        self, path: str, data: bytes | None, headers: dict[str, str], method: str = "POST"
    ) -> bytes:
        url = f"{self.stack.url}{path}"
        request = urllib.request.Request(url, data, headers, method=method)
        try:
            with urllib.request.urlopen(request, timeout=20) as answer:
                return bytes(answer.read())
        except urllib.error.HTTPError as error:
            if error.code == 401:
                return b""
            raise AssertionError((path, error.read())) from error

    def wait_for(self, sql: str, *parameters: Any, seconds: float = 60) -> list[dict[str, Any]]:
        found: list[dict[str, Any]] = self.stack.wait_for_rows(sql, *parameters, seconds=seconds)
        return found

    def ended(self, agent: str, state: str) -> None:
        self.wait_for(ENDED, self.agents[agent], state)

    def newest_run(self, agent: str) -> int:
        sql = "SELECT max(id) AS id FROM drover_run WHERE agent_id = ?"
        return int(self.stack.rows(sql, self.agents[agent])[0]["id"])

    def fire(self, schedule: str) -> None:
        """Fires the schedule now, with commands."""
        self.manage("schedule", "pause", schedule)
        self.manage("schedule", "resume", schedule, "--now")

    def github(self, key: str, event: str, body: bytes, secret: str) -> None:
        mac = hmac.new(secret.encode(), body, hashlib.sha256)
        headers = {"X-GitHub-Event": event, "X-GitHub-Delivery": key}
        headers |= {"X-Hub-Signature-256": f"sha256={mac.hexdigest()}"}
        self.send("/webhooks/github/repo", body, {**headers, "Content-Type": "application/json"})

    def generic(self, source: str, secret: str, key: str) -> None:
        body = json.dumps({"event": "survey", "answers": [1, 2, 3]}).encode()
        mac = hmac.new(secret.encode(), body, hashlib.sha256).hexdigest()
        headers = {"X-Signature": mac, "X-Delivery-Id": key, "Content-Type": "application/json"}
        self.send(f"/webhooks/generic/{source}", body, headers)


def stamp(moment: datetime) -> str:
    """The text of a moment that both databases accept, as Django writes it to SQLite."""
    return str(moment.astimezone(UTC).replace(tzinfo=None))
