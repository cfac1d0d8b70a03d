"""Secrets of an installation are stored and shown nowhere in it."""

import hashlib
import hmac
import json
import re
import secrets
import time
from collections.abc import Iterator
from itertools import chain
from pathlib import Path

import pytest

from tests.end_to_end.searching import (
    Place,
    Visitor,
    files,
    found_in,
    processes,
    redis_keys,
    rows,
)
from tests.parts.fixtures import NewStack
from tests.parts.stack_part import PrivateStack
from tests.parts.waiting import wait_for

pytestmark = pytest.mark.slow

TOKEN = "drover_for-the-search-0123456789abcdef"
ADD = "/admin/credentials/add/"
CONFIG = """
[webhooks.door]
type = "generic"
credential = "door_key"

[webhooks.path]
type = "generic"
credential = "path_key"
secret_in_path = true
"""
SKILL = """---
description: says what it must not say
command: ["./talk.py"]
credentials: [door_key, git_ssh]
webhooks: [{source: door}, {source: path}]
scale: 1
---
Talk.
"""
TALK = """#!/usr/bin/env python3
import base64, hashlib, json, os, subprocess, sys, time
from pathlib import Path
from urllib.parse import quote

def say(*words, **how):
    print(*words, flush=True, **how)

notes = Path(os.environ["DROVER_AGENT_DIR"])
key = os.environ["DOOR_KEY"]
raw = key.encode()
say("sum", hashlib.sha256(raw).hexdigest())
say("raw", key)
say("base64", base64.b64encode(b"user:" + raw).decode())
say("url", quote(key, safe=""), "".join(f"%{byte:02x}" for byte in raw))
say("hex", raw.hex(), raw.hex().upper())
say("split", key[:9], end="")
time.sleep(1.2)
say(key[9:])
say("json", json.dumps({"key": key}), file=sys.stderr)
say("wrapped", base64.encodebytes(b"a longer text before it, and then " + raw).decode())
say("token", os.environ["DROVER_RUN_TOKEN"])
say("file", Path(os.environ["GIT_SSH_KEY_FILE"]).read_text())
say("environment", dict(os.environ))
child = subprocess.Popen(["sleep", "60"], executable="/bin/sleep", env={"KEY": key})
shown = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(60)", key])
(notes / "pid").write_text(str(os.getpid()))
while not (notes / "go").exists():
    time.sleep(0.05)
raise RuntimeError(f"cannot open the door with {key}")
"""


class Canaries:
    def __init__(self) -> None:
        self.door = f'cnry"7Qz/+%&ü-{secrets.token_hex(8)}'
        self.path = f"cnry{secrets.token_hex(12)}"
        self.line = secrets.token_urlsafe(40)

    @property
    def all(self) -> list[str]:
        return [self.door, self.path, self.line]


def write_agent(stack: PrivateStack) -> Path:
    directory = stack.write_agent("talker", SKILL)
    (directory / "talk.py").write_text(TALK)
    (directory / "talk.py").chmod(0o755)
    # The program leaves a note beside itself.
    sandbox = f'\n[sandbox]\nwrite = ["{directory}"]\n'
    (stack.project / "config.toml").write_text(CONFIG + sandbox)
    return directory


def give(stack: PrivateStack, visitor: Visitor, canaries: Canaries, file: Path) -> None:
    """Set the credentials by the command and in the admin."""
    file.write_text(canaries.door)
    done = stack.manage("credential", "set", "door_key", "--file", str(file))
    assert done.returncode == 0, done.stderr
    key = f"-----BEGIN OPENSSH PRIVATE KEY-----\n{canaries.line}\n-----END-----\n"
    for name, text in {"path_key": canaries.path, "git_ssh": key}.items():
        fields = {"tenant": 1, "type": name, "instance_name": "default", "new_value": text}
        assert b"was added successfully" in visitor.fill_in(ADD, **fields)


def send(visitor: Visitor, canaries: Canaries) -> None:
    body = json.dumps({"event": "knock"}).encode()
    mac = hmac.new(canaries.door.encode(), body, hashlib.sha256).hexdigest()
    plain = {"content-type": "application/json", "x-api-key": canaries.path}
    signed = {**plain, "x-signature": mac, "x-delivery-id": "one"}
    assert b'"matched": 1' in visitor.post("/webhooks/generic/door", body, signed)[1]
    by_path = f"/webhooks/generic/path/{canaries.path}"
    answer = visitor.post(by_path, body, {**plain, "x-delivery-id": "two"})
    assert b'"matched": 1' in answer[1]


def shown(visitor: Visitor, run_id: int) -> Iterator[Place]:
    api = ("/v1/runs", f"/v1/runs/{run_id}", f"/v1/runs/{run_id}/logs", "/v1/events")
    pages = ["/admin/runs/", "/admin/credentials/", "/admin/events/"]
    rows = {"runs": run_id, "credentials": 1, "deliveries": 1}
    pages += [f"/admin/{table}/{pk}/change/" for table, pk in rows.items()]
    return chain(map(visitor.answer, api), map(visitor.page, pages))


def printed(stack: PrivateStack, run_id: int) -> str:
    sql = "SELECT data FROM drover_run_output WHERE run_id = ? ORDER BY seq"
    return b"".join(bytes(row["data"]) for row in stack.rows(sql, run_id)).decode()


@pytest.mark.fault("F76")
def test_a_secret_printed_in_every_encoding_is_stored_nowhere(
    new_stack: NewStack, tmp_path: Path
) -> None:
    """Guard: F76. The test finds a secret if output is stored without redaction, if a header is
    logged, or if a value is in a message or an argument."""
    stack, canaries = new_stack(DROVER_BOOTSTRAP_TOKEN=TOKEN), Canaries()
    agent = write_agent(stack)
    up = stack.up()
    visitor = Visitor(stack, TOKEN)
    visitor.log_in("secret-for-tests")
    give(stack, visitor, canaries, tmp_path / "door_key")
    send(visitor, canaries)
    pid = int(wait_for(lambda: _text(agent / "pid"), 20, lambda: stack.log("up")))
    (run_id,) = (row["id"] for row in stack.rows("SELECT id FROM drover_run"))
    time.sleep(1)  # until the output so far is flushed
    everywhere = chain(
        rows(stack), files_except_workdir(stack, run_id), redis_keys(stack), processes(up.pid, pid)
    )
    assert found_in(everywhere, canaries.all) == []
    (agent / "go").touch()
    ended = "SELECT * FROM drover_run WHERE finished_at IS NOT NULL"
    wait_for(lambda: len(stack.rows(ended)) == 2, 30, lambda: stack.log("up"))

    said = printed(stack, run_id)
    assert hashlib.sha256(canaries.door.encode()).hexdigest() in said
    assert said.count("[redacted door_key]") >= 11 and "[redacted git_ssh]" in said
    assert re.search(r"^token \[redacted run token\]$", said, re.MULTILINE)
    assert "RuntimeError: cannot open the door with [redacted door_key]" in said
    everywhere = chain(
        rows(stack), files(stack), redis_keys(stack), processes(up.pid, pid), shown(visitor, run_id)
    )
    assert found_in(everywhere, canaries.all) == []


def files_except_workdir(stack: PrivateStack, run_id: int) -> Iterator[Place]:
    """The workdir of the run holds its key file, readable by its owner only."""
    directory = str(stack.data / "runs" / str(run_id))
    return (place for place in files(stack) if not place[0].startswith(directory))


def _text(path: Path) -> str:
    return path.read_text() if path.exists() else ""
