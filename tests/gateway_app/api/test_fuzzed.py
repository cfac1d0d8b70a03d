"""The API's whole document fuzzed on a real server."""

import json
import subprocess
import sys
import urllib.request
from pathlib import Path

import pytest

from tests.gateway_app.api.live import Server, serve
from tests.parts.fixtures import NewStack

# A token that is being used must not be taken away halfway: these get one of their own.
TAKE_THE_TOKEN_AWAY = ("revoke_token", "rotate_tenant")
# They have no end that could be waited for; tests/gateway_app/streams has their errors.
ENDLESS = ("stream_notifications", "follow_lines")
# What a phrase, a zone or a cursor means no schema can say, so it is refused for that, too.
NOT_CHECKED = "positive_data_acceptance"


def fuzz(server: Server, token: str, directory: Path, *options: str) -> None:
    if not server.stack.database_url.startswith("sqlite"):
        # What is refused by its shape alone reaches no database; it is shown on the other one.
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


@pytest.mark.slow
@pytest.mark.timeout(700)
def test_nothing_in_the_document_is_answered_with_a_fault_or_in_another_shape(
    new_stack: NewStack, tmp_path: Path
):
    server = serve(new_stack)
    for _ in range(4):
        assert server.ask("POST", "/agents/hello/run", {"prompt": "x"})[0] == 202
    body = {"schedule": "every day at 09:00", "message": "x"}
    assert server.ask("POST", "/schedules", body)[0] == 201
    delivered = urllib.request.Request(f"{server.stack.url}/webhooks/generic/hooks", data=b"{}")
    with urllib.request.urlopen(delivered, timeout=20) as response:
        assert json.load(response)["delivery"] == 1
    others = [("--exclude-operation-id", name) for name in TAKE_THE_TOKEN_AWAY + ENDLESS]
    # Signals are for another kind of token: with this one they all say the same.
    others.append(("--exclude-tag", "signals"))
    fuzz(server, server.token, tmp_path, *(text for pair in others for text in pair))
    # It got beyond the door: the token still opens it, and much was done with it.
    assert server.ask("GET", "/agents")[0] == 200
    assert server.ask("POST", "/tenants", {"name": "acme-for-this-test"})[0] == 201
    spent = server.new_token("admin", "acme-for-this-test")
    these = [("--include-operation-id", name) for name in TAKE_THE_TOKEN_AWAY]
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
