"""/metrics: its values, its access rules and its cost."""

import urllib.error
import urllib.request
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext
from prometheus_client.openmetrics.parser import text_string_to_metric_families as open_metrics
from prometheus_client.parser import text_string_to_metric_families as plain_metrics

from agents_app.database.transactions import in_transaction
from agents_app.events.totals import add_to_totals
from agents_app.maintenance import metrics as fleet_metrics
from agents_app.maintenance.totals import count_totals
from agents_app.models import Agent, Scheduler, Tenant
from gateway_app import metrics
from gateway_app.access import rate_limits
from gateway_app.access.rate_limits import RateLimit
from tests.agents_app.admin.visitors import fill
from tests.agents_app.fleet import NOON, Fleet, at
from tests.gateway_app.api.calling import token_of
from tests.parts.fixtures import NewStack
from tests.parts.ports import free_port
from tests.parts.waiting import wait_for

SECRET = "canary-of-a-prompt"
HERE = {"Host": "127.0.0.1:8080"}


def scrape(client: Client, **headers: str) -> dict[tuple[str, ...], float]:
    """Every sample by its name and the values of its labels, in the order of the label names."""
    reply = client.get("/metrics", headers={**HERE, **headers})
    assert reply.status_code == 200, reply.content
    return samples(plain_metrics(reply.content.decode()))


def samples(families: Iterator[Any]) -> dict[tuple[str, ...], float]:
    return {
        (sample.name, *(value for _, value in sorted(sample.labels.items()))): sample.value
        for family in families
        for sample in family.samples
    }


@pytest.fixture
def busy(fleet: Fleet) -> Fleet:
    """Rows of every kind, the newest one an hour old."""
    fill(fleet, agents=2)
    fleet.worker(concurrency=16, lease_until=datetime.now(UTC) + timedelta(hours=1))
    count_totals(datetime.now(UTC) + timedelta(minutes=1))
    return fleet


# --- values ---------------------------------------------------------------------------------


def test_runs_and_queues_are_reported_per_agent(busy: Fleet, client: Client):
    found = scrape(client)
    assert found["drover_agents",] == 2
    assert found["drover_runs", "running"] == 2
    assert found["drover_runs", "pending"] == 0
    assert found["drover_queue_depth_all",] == 2
    for name in ("agent-0", "agent-1"):
        assert found["drover_queue_depth", name, "default"] == 1
        assert found["drover_agent_slots_used", name, "default"] == 1
        assert found["drover_agent_slots", name, "default"] == 1


def test_workers_that_hold_their_lease_have_threads_and_runs(busy: Fleet, client: Client):
    found = scrape(client)
    assert found["drover_workers", "alive"] == 1
    assert found["drover_worker_threads", "worker-1"] == 16
    assert found["drover_worker_runs", "worker-1"] == 0


def test_finished_runs_and_firings_are_counted(busy: Fleet, client: Client):
    refused = {("deliveries_refused", "github", "bad_signature"): 3.0}
    in_transaction(lambda: add_to_totals({**refused, ("deliveries", "github", "matched"): 5.0}))
    found = scrape(client)
    assert found["drover_runs_finished_total", "failed"] == 2
    assert found["drover_runs_finished_total", "dead"] == 0
    assert found["drover_firings_total", "started", ""] == 2
    assert found["drover_deliveries_total", "matched", "github"] == 5
    assert found["drover_deliveries_refused_total", "github", "bad_signature"] == 3
    assert found["drover_events_total", "run.admitted"] == 4
    assert found["drover_run_duration_seconds_count", "failed"] == 2
    assert found["drover_run_duration_seconds_bucket", "0.1", "failed"] == 2
    assert found["drover_firing_lateness_seconds_count",] == 2
    assert found["drover_firing_lateness_seconds_bucket", "+Inf"] == 2


def test_the_state_of_the_scheduler_is_reported(busy: Fleet, client: Client):
    Scheduler.objects.update(check_count=7, trigger_count=3, started_at=NOON)
    found = scrape(client)
    assert found["drover_scheduler_state", "running"] == 1
    assert found["drover_scheduler_state", "stopped"] == 0
    assert found["drover_scheduler_checks_total",] == 7
    assert found["drover_scheduler_triggers_total",] == 3
    assert found["drover_scheduler_started_timestamp_seconds",] == NOON.timestamp()
    assert found["drover_totals_counted_timestamp_seconds",] > NOON.timestamp()
    assert found["drover_schedules_active",] == 2
    assert found["drover_schedules_overdue",] == 2


def test_an_empty_installation_has_all_metrics(db: None, client: Client):
    found = scrape(client)
    assert found["drover_agents",] == found["drover_runs_finished_total", "failed"] == 0
    assert found["drover_scheduler_state", "stopped"] == 1
    assert found["drover_run_duration_seconds_count", "succeeded"] == 0


def test_both_formats_can_be_parsed_and_have_the_same_values(busy: Fleet, client: Client):
    accept = {"Accept": "application/openmetrics-text; version=1.0.0"}
    reply = client.get("/metrics", headers=HERE | accept)
    assert reply["Content-Type"].startswith("application/openmetrics-text")
    assert samples(open_metrics(reply.content.decode())) == scrape(client)


def test_metrics_contain_no_secrets_prompts_or_names_of_users(fleet: Fleet, client: Client):
    agent = fleet.agent(instructions=SECRET, env={"KEY": SECRET}, description=SECRET)
    job = fleet.start(fleet.enqueue(agent, prompt=SECRET, requested_by=SECRET, context=SECRET))
    fleet.finish(job, "failed", error=SECRET)
    count_totals(at(days=1))
    text = client.get("/metrics", headers=HERE).content.decode()
    assert SECRET not in text


def test_a_name_with_quotes_is_escaped_in_a_label(fleet: Fleet, client: Client):
    fleet.worker(name='a "b"\n\\c', lease_until=datetime.now(UTC) + timedelta(hours=1))
    assert scrape(client)["drover_worker_threads", 'a "b"\n\\c'] == 4


# --- cost -----------------------------------------------------------------------------------


def test_the_number_of_queries_does_not_grow_with_the_fleet(fleet: Fleet, client: Client):
    def queries() -> int:
        with CaptureQueriesContext(
            connection,
        ) as captured:
            fleet_metrics.read_metrics(NOON)
        return len(captured)

    fill(fleet, agents=1)
    few = queries()
    for number in range(20):
        fleet.enqueue(fleet.agent(f"more-{number}"))
    assert queries() == few < 15


def test_a_limited_number_of_agents_has_own_lines_and_all_are_in_the_sums(
    fleet: Fleet, client: Client, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(fleet_metrics, "MAX_AGENTS", 3)
    agents = [Agent(tenant=fleet.tenant, name=f"a{n}", paused_at=NOON) for n in range(5)]
    for agent in Agent.objects.bulk_create(agents):
        fleet.enqueue(agent)
    found = scrape(client)
    assert len([key for key in found if key[0] == "drover_queue_depth"]) == 3
    assert (found["drover_queue_depth_all",], found["drover_agents",]) == (5, 5)


# --- access ---------------------------------------------------------------------------------


@pytest.mark.parametrize("host", ["localhost", "127.0.0.1:8080", "[::1]:8080", "[::1]"])
def test_a_local_request_needs_no_token_on_a_loopback_gateway(
    fleet: Fleet, client: Client, host: str
):
    assert client.get("/metrics", headers={"Host": host}).status_code == 200


@pytest.mark.parametrize("header", metrics.FORWARDED)
def test_a_request_through_a_proxy_is_not_local(fleet: Fleet, client: Client, header: str):
    reply = client.get("/metrics", headers={**HERE, header: "203.0.113.7"})
    assert (reply.status_code, reply["WWW-Authenticate"]) == (401, "Bearer")


def test_a_request_for_another_host_name_needs_a_token(fleet: Fleet, client: Client, settings: Any):
    settings.ALLOWED_HOSTS = ["drover.example"]
    outside = {"Host": "drover.example"}
    assert client.get("/metrics", headers=outside).status_code == 401
    token = {"Authorization": f"Bearer {token_of(fleet.tenant, 'read')}"}
    assert client.get("/metrics", headers=outside | token).status_code == 200


@pytest.mark.parametrize(
    ("authorization", "status"),
    [
        *(("", 401), ("Bearer", 401), ("Bearer nonsense", 401), ("Basic {token}", 401)),
        *(("Bearer {token}", 200), ("bearer {token}", 200), ("Bearer {theirs}", 403)),
    ],
)
def test_a_reachable_gateway_needs_a_token_of_the_default_tenant(
    fleet: Fleet, client: Client, monkeypatch: Any, authorization: str, status: int
):
    monkeypatch.setattr(metrics, "is_local", lambda *_: False)
    other = Tenant.objects.create(name="acme")
    header = authorization.format(
        token=token_of(fleet.tenant, "read"), theirs=token_of(other, "admin")
    )
    reply = client.get("/metrics", headers={**HERE, "Authorization": header})
    assert reply.status_code == status
    assert ("drover_agents" in reply.content.decode()) == (status == 200)


def test_wrong_tokens_are_limited(fleet: Fleet, client: Client, monkeypatch: Any):
    monkeypatch.setattr(metrics, "is_local", lambda *_: False)
    monkeypatch.setattr(rate_limits, "WRONG_TOKENS", RateLimit(rate=0.01, burst=2))
    replies = [
        client.get("/metrics", headers={**HERE, "Authorization": f"Bearer guess-{number}"})
        for number in range(3)
    ]
    assert [reply.status_code for reply in replies] == [401, 401, 429]
    assert int(replies[-1]["Retry-After"]) > 0


def test_metrics_allow_only_reading_methods(fleet: Fleet, client: Client):
    assert client.post("/metrics", headers=HERE).status_code == 405


# --- on a real server -----------------------------------------------------------------------

SKILL = '---\ndescription: Says hello\ncommand: ["true"]\nscale: 2\n---\nSay hello.\n'
START_RUNS = """
from django.core.management import call_command
for _ in range(3):
    call_command("run", "hello")
"""
COUNT_NOW = """
from datetime import datetime, timedelta, UTC
from agents_app.maintenance.totals import count_totals
count_totals(datetime.now(UTC) + timedelta(minutes=1))
"""


def test_a_complete_installation_reports_its_runs(new_stack: NewStack):
    stack = new_stack()
    stack.write_agent("hello", SKILL)
    stack.up()

    def read() -> dict[tuple[str, ...], float]:
        with urllib.request.urlopen(f"{stack.url}/metrics", timeout=20) as response:
            return samples(plain_metrics(response.read().decode()))

    done = stack.manage("shell", "-v0", "-c", START_RUNS)
    assert done.returncode == 0, done.stderr
    first = read()
    assert first["drover_agent_slots", "hello", "default"] == 2
    assert first["drover_workers", "alive"] == 1
    assert first["drover_scheduler_state", "running"] == 1
    ended = "SELECT 1 FROM drover_run WHERE state = 'succeeded'"
    wait_for(lambda: len(stack.rows(ended)) == 3, 20, "the runs have not ended")
    # Beat counts every few seconds what is older than some seconds; the test does not wait for it.
    done = stack.manage("shell", "-v0", "-c", COUNT_NOW)
    assert done.returncode == 0, done.stderr
    found = read()
    assert found["drover_runs_finished_total", "succeeded"] == 3
    assert found["drover_run_duration_seconds_count", "succeeded"] == 3
    duty = "SELECT 1 FROM django_celery_beat_periodictask WHERE enabled AND task = ?"
    assert len(stack.rows(duty, "agents_app.tasks.count_totals")) == 1


def test_a_real_reachable_gateway_needs_a_token(new_stack: NewStack):
    stack = new_stack(DROVER_HOST="0.0.0.0", DROVER_PORT=str(free_port()))
    assert stack.manage("discover", "--sync").returncode == 0
    token = stack.manage("token", "create", "prometheus", "--scope", "read").stdout.strip()
    stack.start("gateway")
    with pytest.raises(urllib.error.HTTPError) as refused:
        urllib.request.urlopen(f"{stack.url}/metrics", timeout=20)
    assert refused.value.code == 401
    request = urllib.request.Request(
        f"{stack.url}/metrics", headers={"Authorization": f"Bearer {token}"}
    )
    with urllib.request.urlopen(request, timeout=20) as response:
        assert samples(plain_metrics(response.read().decode()))["drover_agents",] == 0
