"""Fuzzes all operations of the OpenAPI document on a real server."""

import json
import subprocess
import sys
import urllib.request
from pathlib import Path

import pytest

from tests.gateway_app.api.live import LiveServer, serve
from tests.parts.fixtures import NewStack

# These operations revoke the token of the request, so they are fuzzed with another token.
REVOKE_THE_TOKEN = ("revoke_token", "rotate_tenant")
# Streams without an end; tests/gateway_app/streams tests their errors.
ENDLESS = ("stream_notifications", "follow_lines")
# A schema cannot describe valid phrases, zones and cursors, so valid data may be refused.
NOT_CHECKED = "positive_data_acceptance"


def fuzz(server: LiveServer, token: str, directory: Path, *options: str) -> None:
    if not server.stack.database_url.startswith("sqlite"):
        # A request that is refused by its shape reaches no database: SQLite shows these.
        options = ("--phases", "examples,fuzzing,stateful", *options)
    done = subprocess.run(
        [
            *(sys.executable, "-m", "schemathesis.cli", "run"),
            f"{server.stack.url}/v1/openapi.json",
            *("--header", f"Authorization: Bearer {token}", "--max-examples", "2"),
            *("--exclude-checks", NOT_CHECKED, "--continue-on-failure", "--no-color"),
            *("--request-timeout", "20", *options),
        ],
        cwd=directory,
        capture_output=True,
        text=True,
        timeout=600,
        check=False,
    )
    assert done.returncode == 0, done.stdout[-8000:] + done.stderr[-2000:]


@pytest.mark.timeout(700)
def test_fuzzed_requests_get_no_500_and_only_documented_responses(
    new_stack: NewStack, tmp_path: Path
):
    server = serve(new_stack)
    for _ in range(4):
        assert server.request("POST", "/agents/hello/run", {"prompt": "x"})[0] == 202
    body = {"schedule": "every day at 09:00", "message": "x"}
    assert server.request("POST", "/schedules", body)[0] == 201
    delivered = urllib.request.Request(f"{server.stack.url}/webhooks/generic/hooks", data=b"{}")
    with urllib.request.urlopen(delivered, timeout=20) as response:
        assert json.load(response)["delivery"] == 1
    others = [("--exclude-operation-id", name) for name in REVOKE_THE_TOKEN + ENDLESS]
    # Signals need the token of a run: with this token all responses are 401.
    others.append(("--exclude-tag", "signals"))
    fuzz(server, server.token, tmp_path, *(text for pair in others for text in pair))
    # The fuzzed requests were authenticated: the token is still valid, and rows were changed.
    assert server.request("GET", "/agents")[0] == 200
    assert server.request("POST", "/tenants", {"name": "acme-for-this-test"})[0] == 201
    spent = server.new_token("admin", "acme-for-this-test")
    these = [("--include-operation-id", name) for name in REVOKE_THE_TOKEN]
    fuzz(server, spent, tmp_path, *(text for pair in these for text in pair))
    names = server.stack.rows("SELECT DISTINCT name FROM drover_run_event")
    done = {row["name"] for row in names}
    assert {
        "schedule.created",
        "schedule.deleted",
        "agent.scaled",
        "token.created",
        "delivery.replayed",
    } <= done
    assert "api.failed" not in server.stack.log("gateway")
