"""Creates a fleet with a long history as rows, and measures the pages of the dashboard."""

import time
from datetime import UTC, datetime, timedelta
from statistics import median
from typing import Any

from django.apps import apps
from django.contrib.auth.models import User
from django.db import connection
from django.db.models import Model
from django.test import Client
from django.urls import reverse

from agents_app.models import (
    Agent,
    Delivery,
    Firing,
    RuleState,
    Run,
    RunEvent,
    RunOutput,
    Schedule,
    Trigger,
    WebhookSource,
    Worker,
    WorkItem,
)
from tests.benchmarks.inside.fleet import write_agents, write_schedules

LISTS = ("agent", "run", "schedule", "firing", "delivery", "worker", "workitem", "runevent",
         "rulestate", "message", "usage")  # fmt: skip
# The newest run is running and has a log.
ROWS = {"run": "-pk", "agent": "pk", "schedule": "pk", "delivery": "pk", "workitem": "pk",
        "worker": "pk", "rulestate": "pk"}  # fmt: skip
RULES, RUNNING = 200, 20
EVERY_SECONDS = 30


def write(agents: int, runs: int) -> None:
    """Write one row of each kind through the application, and copy it in SQL, which is fast."""
    write_agents(agents, 1, ["/bin/true"])
    write_schedules(agents)
    now = datetime.now(UTC)
    pairs = f"SELECT a.id AS a, b.id AS b FROM drover_agent a, drover_agent b LIMIT {runs}"
    item, run = _first_run(now)
    _copy(item, pairs, agent_id="s.a", created_at=_ago("t.created_at", f"({runs} - s.b * 100)"))
    ended = f"SELECT id, agent_id, created_at AS at FROM drover_work_item WHERE id <> {item.pk}"
    of_run = {"work_item_id": "s.id", "agent_id": "s.agent_id"}
    times = dict.fromkeys(("created_at", "started_at", "finished_at"), "s.at")
    state = "CASE WHEN s.id % 4 = 0 THEN 'failed' ELSE 'succeeded' END"
    _copy(run, ended, **of_run, **times, state=state)
    event = RunEvent.objects.create(
        **{"tenant": run.tenant, "agent": run.agent, "run": run, "name": "run.succeeded", "at": now}
    )
    ran = f"SELECT id, agent_id, finished_at AS at FROM drover_run WHERE id <> {run.pk}"
    _copy(event, ran, run_id="s.id", agent_id="s.agent_id", at="s.at")
    _write_the_rest(run, now)
    if connection.vendor == "postgresql":
        with connection.cursor() as cursor:
            cursor.execute("ANALYZE")  # which it does by itself within a minute


def measure(times: int) -> dict[str, float]:
    """Median milliseconds by page, after one request that fills the caches."""
    user, _ = User.objects.get_or_create(username="bench", is_staff=True, is_superuser=True)
    client = Client(HTTP_HOST="127.0.0.1")
    client.force_login(user)
    return {name: _median_ms(client, url, times) for name, url in pages().items()}


def pages() -> dict[str, str]:
    found = {"overview": reverse("admin:index")}
    found["calendar"] = reverse("admin:agents_app_schedule_calendar")
    found |= {f"{noun} list": reverse(f"admin:agents_app_{noun}_changelist") for noun in LISTS}
    for noun, order in ROWS.items():
        row = apps.get_model("agents_app", noun)._default_manager.order_by(order)[0]
        found[noun] = reverse(f"admin:agents_app_{noun}_change", args=[row.pk])
    return found


def _median_ms(client: Client, url: str, times: int) -> float:
    taken = []
    for _ in range(times + 1):
        began = time.perf_counter()
        answer = client.get(url)
        taken.append((time.perf_counter() - began) * 1000)
        assert answer.status_code == 200, f"{url}: {answer.status_code}"
    return median(taken[1:])


# --- rows -----------------------------------------------------------------------------------


def _copy(row: Model, source: str, **own: str) -> None:
    """SQL that copies a row `t` for each row of the source `s`."""
    table = row._meta.db_table
    columns = [field.column for field in row._meta.concrete_fields if not field.primary_key]
    values = ", ".join(own.get(column, f"t.{column}") for column in columns)
    with connection.cursor() as cursor:
        cursor.execute(
            f"INSERT INTO {table} ({', '.join(columns)}) SELECT {values} "
            f"FROM ({source}) s, {table} t WHERE t.id = {row.pk}"
        )


def _ago(column: str, steps: str) -> str:
    if connection.vendor == "sqlite":
        return f"datetime({column}, '-' || ({steps} * {EVERY_SECONDS}) || ' seconds')"
    return f"{column} - {steps} * interval '{EVERY_SECONDS} seconds'"


def _first_run(now: datetime) -> tuple[WorkItem, Run]:
    agent = Agent.objects.order_by("pk")[0]
    same = {"tenant_id": agent.tenant_id, "agent": agent, "trigger": Trigger.MANUAL}
    item = WorkItem.objects.create(
        **{**same, "state": WorkItem.State.DONE, "prompt": "look at it"},
        **{"created_at": now, "available_at": now, "finished_at": now},
    )
    worker = {"boot_id": "one", "pid": 1, "pid_started": 0.0, "concurrency": 16, "started_at": now}
    workers = [
        Worker.objects.create(
            name=f"worker-{n}", host="here", lease_until=now + timedelta(days=1), **worker
        )
        for n in range(20)
    ]
    times = {"created_at": now, "started_at": now, "finished_at": now}
    run = Run.objects.create(
        **{**same, **times, "work_item": item, "state": Run.State.SUCCEEDED, "worker": workers[0]}
    )
    return item, run


def _write_the_rest(run: Run, now: datetime) -> None:
    """Create queued work, firings, deliveries, and a log of the newest run."""
    agents = "SELECT id FROM drover_agent"
    many = "SELECT a.id AS a, b.id AS b FROM drover_agent a, drover_agent b LIMIT 20000"
    same: dict[str, Any] = {"tenant": run.tenant}
    item = {**same, "trigger": Trigger.MANUAL, "created_at": now, "available_at": now}
    _copy(WorkItem.objects.create(agent=run.agent, **item), agents, agent_id="s.id")
    schedule = Schedule.objects.order_by("pk")[0]
    times = {"due_at": now, "recorded_at": now, "decide_at": now}
    firing = Firing.objects.create(**same, **times, schedule=schedule, outcome="started")
    _copy(firing, many, due_at=_ago("t.due_at", "(s.a * 1000 + s.b)"))
    delivery = Delivery.objects.create(
        **{**same, "provider": "github", "delivery_id": "d", "event": "issues", "matched": 1},
        **{"outcome": "matched", "received_at": now, "headers": "{}", "decisions": "[]"},
        source=WebhookSource.objects.create(**same, name="gh", type="github"),
        body=b"{}" * 500,
    )
    _copy(delivery, many, delivery_id="'d' || s.a || '-' || s.b")
    RuleState.objects.bulk_create(
        RuleState(
            **same,
            name=f"rule{n}",
            line=n,
            next_due_at=now,
            text=f"[rule{n}] every 1m => resume all",
        )
        for n in range(RULES)
    )
    going_on = {**same, "trigger": Trigger.MANUAL, "state": Run.State.RUNNING, "slot": 1}
    for agent in Agent.objects.order_by("-pk")[:RUNNING]:
        work = WorkItem.objects.create(agent=agent, **(item | {"state": WorkItem.State.ADMITTED}))
        Run.objects.create(agent=agent, work_item=work, created_at=now, started_at=now, **going_on)
    newest = Run.objects.latest("pk")
    lines = {"stream": 1, "at": now, "data": b"a line of the log\n" * 50}
    RunOutput.objects.bulk_create(
        RunOutput(**same, **lines, run=newest, seq=n, first_line=50 * (n - 1))
        for n in range(1, 200)
    )
