"""A real gateway and a client of its API."""

import json
import urllib.error
import urllib.request
from typing import Any

from tests.parts.fixtures import NewStack
from tests.parts.stack_part import PrivateStack

HOOKS = '[webhooks.hooks]\ntype = "generic"\nallowUnsigned = true\n'
SKILL = '---\ndescription: Says hello\ncommand: ["true"]\nscale: 2\n---\nSay hello.\n'


class LiveServer:
    def __init__(self, stack: PrivateStack) -> None:
        self.stack = stack
        self.token = self.new_token("admin")

    def new_token(self, scope: str, tenant: str = "default") -> str:
        made = self.stack.manage("token", "create", "test", "--scope", scope, "--tenant", tenant)
        assert made.returncode == 0, made.stderr
        return made.stdout.strip()

    def request(self, method: str, path: str, body: Any = None, **headers: str) -> tuple[int, Any]:
        message = urllib.request.Request(
            f"{self.stack.url}/v1{path}",
            method=method,
            data=None if body is None else json.dumps(body).encode(),
            headers={"Authorization": f"Bearer {self.token}"}
            | {name.replace("_", "-"): value for name, value in headers.items()},
        )
        try:
            with urllib.request.urlopen(message, timeout=20) as response:
                return response.status, json.load(response)
        except urllib.error.HTTPError as error:
            return error.code, json.load(error)


def serve(new_stack: NewStack) -> LiveServer:
    """Starts only the gateway; without a worker, requested work stays queued."""
    stack = new_stack(DROVER_API_RATE="100000")
    stack.write_agent("hello", SKILL)
    (stack.project / "config.toml").write_text(HOOKS)
    synced = stack.manage("discover", "--sync")
    assert synced.returncode == 0, synced.stderr
    stack.start("gateway")
    return LiveServer(stack)
