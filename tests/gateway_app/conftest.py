"""The fixtures of the tests of the gateway, and the tests that run on one database only."""

import os

from tests.agents_app.admin.visitors import _times_are_shown_in_utc as _times_are_shown_in_utc
from tests.agents_app.admin.visitors import boss as boss
from tests.agents_app.admin.visitors import fleet as fleet
from tests.agents_app.admin.visitors import visitor as visitor

# Requests that are answered before any query are the same on both databases; the fuzzed requests
# are mostly refused before a query, and are tried on one.
collect_ignore = (
    [
        *("test_hardening.py", "test_deployment.py", "test_metrics_plans.py", "test_traces.py"),
        *("asgi/test_run_socket.py", "asgi/test_body_limit.py", "api/test_fuzzed.py"),
    ]
    if os.environ.get("DROVER_TEST_DATABASE") == "postgres"
    else []
)
