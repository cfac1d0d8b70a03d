"""PostgreSQL: an entry with a lower id may be committed after one with a higher id."""

import random
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager

import psycopg
import pytest

from agents_app.events import tail as tail_module
from agents_app.events.tail import Tail
from agents_app.models import RunEvent, Tenant
from tests.agents_app.fleet import NOON
from tests.gateway_app.streams.client import Stream
from tests.gateway_app.streams.conftest import ENTRY, Gateway
from tests.parts.waiting import wait_for


@contextmanager
def unfinished(gateway: Gateway) -> Iterator[tuple[psycopg.Connection, int]]:
    """A transaction that has taken an id and has not been committed."""
    with psycopg.connect(gateway.stack.database_url) as connection:
        yield connection, _insert(gateway, connection)


def _insert(gateway: Gateway, connection: "psycopg.Connection[tuple[int]]", run: int = 1) -> int:
    sql = ENTRY.replace("?", "%s").encode()
    row = connection.execute(sql, gateway.columns("run.started", run)).fetchone()
    assert row is not None
    return int(row[0])


def test_an_entry_with_a_lower_id_that_is_committed_later_is_sent_first(gateway: Gateway):
    with gateway.listen() as stream, unfinished(gateway) as (slow, lower):
        higher = gateway.tell("run.started", 2)
        assert higher > lower
        assert next(stream.lines()) == ": heartbeat"  # half a second without an event
        slow.commit()
        assert [event.id for event in stream.take(2)] == [lower, higher]


def test_an_id_that_was_rolled_back_delays_a_stream_only_shortly(gateway: Gateway):
    with gateway.listen() as stream, unfinished(gateway) as (slow, lower):
        higher = gateway.tell("run.started", 2)
        slow.rollback()
        began = time.monotonic()
        assert stream.next().id == higher == lower + 1
        assert time.monotonic() - began < 5


def test_a_client_that_opens_or_resumes_during_the_gap_misses_no_entry(gateway: Gateway):
    before = gateway.tell("run.started", 1)
    with unfinished(gateway) as (slow, lower), ThreadPoolExecutor(2) as pool:
        higher = gateway.tell("run.started", 2)
        # The end of the journal is not known yet: the streams open when it is.
        fresh = pool.submit(gateway.listen)
        back = pool.submit(gateway.listen, after=before)
        time.sleep(0.5)
        assert not fresh.done() and not back.done()
        slow.commit()
        with back.result(10) as stream:
            assert [event.id for event in stream.take(2)] == [lower, higher]
        with fresh.result(10) as stream:
            last = gateway.tell("run.started", 3)
            assert stream.next().id == last


def test_the_entries_of_many_writers_are_sent_in_the_order_of_their_ids(gateway: Gateway):
    """Some writers are slow, some roll back; the client disconnects and resumes."""
    stop = threading.Event()
    wrong = random.Random(7)

    def write(number: int) -> set[int]:
        chance, committed = random.Random(number), set()
        with psycopg.connect(gateway.stack.database_url) as connection:
            while not stop.is_set():
                ids = {_insert(gateway, connection) for _ in range(chance.randint(1, 3))}
                # Slow enough for a client that disconnects repeatedly.
                time.sleep(chance.choice([0.01, 0.05, 0.1]))
                if chance.random() < 0.2:
                    connection.rollback()
                else:
                    connection.commit()
                    committed |= ids
        return committed

    received: list[int] = []
    with gateway.listen() as stream, ThreadPoolExecutor(6) as pool:
        after = stream.last_id
        writing = [pool.submit(write, number) for number in range(6)]
        until = time.monotonic() + 4
        while time.monotonic() < until:
            with Stream(gateway.port, gateway.token, after=after) as resumed:
                events = resumed.take(wrong.randint(2, 60))[1:]
                received += [event.id for event in events if event.id is not None]
                after = resumed.last_id
        stop.set()
        written = sorted(set().union(*(each.result() for each in writing)))
        assert [event.id for event in stream.take(len(written))] == written
    with gateway.listen(after=after) as stream:
        received += [event.id or 0 for event in stream.take(len(written) - len(received))]
    assert received == written
    assert len(written) > 100


# --- the tail by itself ---------------------------------------------------------------------


@pytest.fixture
def tenant(transactional_db: None) -> Tenant:
    return Tenant.objects.create(name="default")


def entry(tenant: Tenant) -> int:
    return RunEvent.objects.create(tenant=tenant, name="run.started", at=NOON).pk


def test_a_writer_that_hangs_is_not_waited_for_forever(
    tenant: Tenant, monkeypatch: pytest.MonkeyPatch
):
    tail = Tail()
    entry(tenant)
    assert tail.read(0.0) == []
    first = entry(tenant)
    monkeypatch.setattr(tail_module, "_writers", lambda: frozenset({"7/42"}))
    RunEvent.objects.create(pk=first + 2, tenant=tenant, name="run.started", at=NOON)
    assert [entry.id for entry in tail.read(1.0)] == [first]
    assert tail.is_waiting
    assert tail.read(60.0) == []
    assert [entry.id for entry in tail.read(61.5)] == [first + 2]


def test_writers_are_the_transactions_that_have_changed_the_journal(tenant: Tenant):
    from django.conf import settings

    address = settings.DATABASES["default"]
    place = f"postgresql://postgres@127.0.0.1:{address['PORT']}/{address['NAME']}"
    with psycopg.connect(place) as other:
        other.execute("SELECT count(*) FROM drover_run_event")
        other.execute("UPDATE drover_tenant SET name = name")
        assert tail_module._writers() == frozenset()
        other.execute("DELETE FROM drover_run_event")
        assert len(tail_module._writers()) == 1
        other.rollback()
    wait_for(lambda: not tail_module._writers(), 5)
