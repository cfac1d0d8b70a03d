"""A small fleet with rows in every table, and users with and without rights."""

from datetime import UTC, datetime
from typing import Any

import pytest
from django.contrib.auth.models import Permission, User
from django.test import Client

from agents_app.models import Heartbeat, MachineSnapshot, Scheduler, Tenant
from tests.agents_app.fleet import Fleet
from tests.agents_app.output.stored import store_output


@pytest.fixture(autouse=True)
def _times_are_shown_in_utc(settings: Any) -> None:
    """Wherever the tests run; people see the zone of their host."""
    settings.TIME_ZONE = "UTC"


@pytest.fixture
def fleet(db: None) -> Fleet:
    """Inside a transaction that is undone after the test."""
    return Fleet(Tenant.objects.create(name="default"))


@pytest.fixture
def boss(db: None) -> Client:
    """A user who may do everything."""
    return _logged_in(User.objects.create_superuser("ann", password="secret"))


@pytest.fixture
def visitor(db: None) -> Client:
    """A staff user who may view everything and change nothing."""
    user = User.objects.create_user("guest", password="secret", is_staff=True)
    user.user_permissions.set(Permission.objects.filter(codename__startswith="view_"))
    return _logged_in(user)


def who_may(*rights: str) -> Client:
    """A staff user who has these rights and no others."""
    user = User.objects.create_user("clerk", password="secret", is_staff=True)
    user.user_permissions.set(
        Permission.objects.filter(codename__in=rights, content_type__app_label="agents_app")
    )
    assert user.user_permissions.count() == len(rights), "there is no such right"
    return _logged_in(user)


def _logged_in(user: User) -> Client:
    client = Client()
    client.force_login(user)
    return client


def fill(fleet: Fleet, agents: int = 1) -> None:
    """Rows in every table, some of them in every agent."""
    now = datetime.now(UTC)
    worker = fleet.worker()
    Scheduler.objects.update_or_create(pk=1, defaults={"last_check_at": now})
    MachineSnapshot.objects.create(
        host="here",
        at=now,
        cpu_percent=12.5,
        memory_used_mb=900,
        memory_total_mb=2000,
        disk_free_mb=5000,
        active_runs=1,
        queue_depth=2,
        active_workers=1,
    )
    for number in range(agents):
        agent = fleet.agent(f"agent-{number}", description="Says hello", instructions="Say hello")
        fleet.fire(fleet.schedule(agent), now)
        job = fleet.start(agent.work_items.get(), now)
        tell(job.run_id, b"hello\n")
        fleet.finish(job, "failed", now, error="exit code 1", exit_code=1)
        busy = fleet.start(fleet.enqueue(agent, now, requested_by="ann"), now)
        Heartbeat.objects.create(
            tenant=fleet.tenant, worker=worker, run_id=busy.run_id, state="busy", at=now
        )
        fleet.enqueue(agent, now, requested_by="ann", prompt="later")


def tell(run_id: int, data: bytes, stream: int = 1) -> None:
    """The run prints something."""
    store_output(run_id, (stream, data))
