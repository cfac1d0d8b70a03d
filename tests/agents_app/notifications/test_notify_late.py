"""Events that are committed late, which only several writers at a time can do."""

import json

import psycopg
import pytest
from django.db import connection

from agents_app.models import Tenant
from agents_app.notifications.send import notify
from tests.agents_app.fleet import Fleet
from tests.agents_app.notifications.test_notify import _loopback_is_meant, receiver, target
from tests.agents_app.receiver import Receiver

__all__ = ["_loopback_is_meant", "receiver"]  # fixtures of the duty's other tests


@pytest.mark.django_db(transaction=True)
def test_an_event_that_is_committed_after_a_younger_one_is_not_passed_over(receiver: Receiver):
    """Guard: nothing behind the oldest writing transaction counts as settled."""
    fleet = Fleet(Tenant.objects.create(name="default"))
    agent = fleet.agent()
    target(fleet, receiver.url)
    insert = (
        "INSERT INTO drover_run_event (tenant_id, agent_id, name, at, detail)"
        " VALUES (%s, %s, 'run.failed', now(), %s)"
    )
    connection.ensure_connection()
    with psycopg.connect(connection.connection.info.dsn, password="") as late:
        late.execute(insert, [fleet.tenant.pk, agent.pk, "late"])
        with connection.cursor() as cursor:
            cursor.execute(insert, [fleet.tenant.pk, agent.pk, "early"])
            cursor.execute("SELECT now() + interval '1 minute'")
            later = cursor.fetchone()[0]
        notify(later)
        assert receiver.requests == []
        late.commit()
    notify(later)
    assert [json.loads(r.body)["data"]["error"] for r in receiver.requests] == ["late", "early"]
