"""Locks of agents: one holder, an expiry time, a queue, deadlocks, and the end of the holder."""

import pytest

from agents_app.database.transactions import in_transaction
from agents_app.errors import DroverError
from agents_app.maintenance.reconcile import reconcile
from agents_app.models import LockWait, ResourceLock, RunEvent, Tenant
from agents_app.runs import control
from agents_app.runs.lifecycle import lose_run
from agents_app.signals.lock_uris import INVALID_URI, uri_problem
from agents_app.signals.locks import LockRefused, NotHeld, find_cycle
from tests.agents_app.calling import Program, program
from tests.agents_app.fleet import NOON, Fleet, at, event_names

URI = "github://acme/app/issues/1"
OTHER = "deploy://api"


@pytest.fixture
def two(fleet: Fleet) -> tuple[Program, Program]:
    agent = fleet.agent("a", scale=3)
    return program(fleet, agent), program(fleet, agent)


def refusal(one: Program, now=NOON, **fields) -> LockRefused:
    with pytest.raises(LockRefused) as caught:
        one.says("lock", now, **fields)
    return caught.value


# --- one holder -----------------------------------------------------------------------------


def test_a_lock_has_one_holder_and_a_refusal_names_the_holder(two):
    first, second = two
    got = first.says("lock", uri=URI)
    assert got == {"ok": True, "expiresAt": at(1800).timestamp(), "fence": got["fence"]}
    more = refusal(second, uri=URI).more
    assert more == {
        "ok": False,
        "holder": f"a-{first.job.run_id}",
        "heldSince": NOON.timestamp(),
    }
    assert "run.locked" in event_names(first.job.run_id)


def test_the_fence_grows_with_every_holder_and_not_with_a_refresh(two):
    first, second = two
    fence = first.says("lock", uri=URI)["fence"]
    assert first.says("lock", at(10), uri=URI)["fence"] == fence
    first.says("unlock", uri=URI)
    assert second.says("lock", uri=URI)["fence"] > fence


def test_the_project_says_how_long_a_lock_holds(fleet: Fleet, two):
    Tenant.objects.update(settings={"resource_lock_timeout_seconds": 60.0})
    assert two[0].says("lock", uri=URI)["expiresAt"] == at(60).timestamp()


@pytest.mark.fault("F48")
def test_a_late_release_does_not_release_the_lock_of_the_next_holder(two):
    first, second = two
    first.says("lock", uri=URI, ttl=10)
    second.says("lock", at(10), uri=URI)
    for signal in ("unlock", "lock-heartbeat"):
        with pytest.raises(LockRefused) as caught:
            first.says(signal, at(11), uri=URI)
        assert (caught.value.http_status, caught.value.more["holder"]) == (
            *(409,),
            f"a-{second.job.run_id}",
        )
    assert ResourceLock.objects.get().holder == f"a-{second.job.run_id}"


def test_a_lock_without_a_holder_cannot_be_released(two):
    with pytest.raises(NotHeld) as caught:
        two[0].says("unlock", uri=URI)
    assert caught.value.http_status == 404


def test_two_tenants_may_lock_the_same_thing(fleet: Fleet, two):
    other_tenant = Fleet(Tenant.objects.create(name="acme"))
    two[0].says("lock", uri=URI)
    assert program(other_tenant, other_tenant.agent("a")).says("lock", uri=URI)["ok"]


# --- the end of the holder ------------------------------------------------------------------


@pytest.mark.parametrize("state", ["succeeded", "failed", "timed_out", "stopped"])
def test_the_end_of_a_run_releases_its_locks_and_deletes_its_waits(two, state: str):
    first, second = two
    first.says("lock", uri=URI)
    first.says("lock", uri=OTHER)
    second.says("lock", uri="x:y")
    refusal(first, uri="x:y")
    first.ends(state)
    assert list(ResourceLock.objects.values_list("uri", flat=True)) == ["x:y"]
    assert LockWait.objects.count() == 0
    assert second.says("lock", uri=URI)["ok"]


@pytest.mark.fault("F48")
def test_the_locks_of_a_lost_run_are_released(two):
    first, second = two
    first.says("lock", uri=URI)
    in_transaction(lambda: lose_run(first.run, NOON, "lost: its worker died"))
    assert second.says("lock", uri=URI)["ok"]


def test_breaking_a_lock_is_recorded_in_the_journal(two):
    first, second = two
    first.says("lock", uri=URI)
    assert control.break_lock(ResourceLock.objects.get(), "ann", NOON)
    assert second.says("lock", uri=URI)["ok"]
    told = RunEvent.objects.get(name="lock.broken").detail
    assert told == f"{URI}, held by a-{first.job.run_id}: ann"


def test_the_sweep_deletes_expired_locks(two):
    two[0].says("lock", uri=URI, ttl=5)
    assert reconcile(at(4), "here")["locks_expired"] == 0
    assert reconcile(at(5), "here")["locks_expired"] == 1


# --- in line --------------------------------------------------------------------------------


@pytest.mark.fault("F48")
def test_waiting_runs_get_a_lock_in_the_order_they_asked(fleet: Fleet, two):
    first, second = two
    third = program(fleet, first.run.agent)
    first.says("lock", uri=URI)
    assert second.says("lock", at(1), uri=URI, wait=True)["ok"] is False
    assert third.says("lock", at(2), uri=URI, wait=True)["ok"] is False
    first.says("unlock", at(3), uri=URI)
    later = third.says("lock", at(4), uri=URI, wait=True)
    assert (later["ok"], later["holder"]) == (False, f"a-{second.job.run_id}")
    assert second.says("lock", at(4), uri=URI, wait=True)["ok"]
    assert LockWait.objects.filter(holder=f"a-{second.job.run_id}").count() == 0


def test_a_run_that_does_not_wait_cannot_overtake_the_queue(fleet: Fleet, two):
    first, second = two
    first.says("lock", uri=URI)
    second.says("lock", at(1), uri=URI, wait=True)
    first.says("unlock", at(2), uri=URI)
    assert "first in line" in str(refusal(first, at(2), uri=URI))


def test_a_run_that_stops_asking_loses_its_place_in_the_queue(fleet: Fleet, two):
    first, second = two
    third = program(fleet, first.run.agent)
    first.says("lock", uri=URI)
    second.says("lock", at(1), uri=URI, wait=True)
    first.says("unlock", at(2), uri=URI)
    assert third.says("lock", at(6), uri=URI, wait=True)["ok"]
    # and comes back to its end
    second.says("lock", at(7), uri=URI, wait=True)
    assert LockWait.objects.get().since == at(7)


# --- circles --------------------------------------------------------------------------------


@pytest.mark.fault("F49")
def test_a_deadlock_of_two_runs_is_reported_to_one_of_them(two):
    first, second = two
    a, b = f"a-{first.job.run_id}", f"a-{second.job.run_id}"
    first.says("lock", uri=URI)
    second.says("lock", uri=OTHER)
    assert first.says("lock", uri=OTHER, wait=True)["ok"] is False
    more = refusal(second, uri=URI, wait=True).more
    assert more["cycle"] == [b, URI, a, OTHER]
    assert more["reason"] == f"possible deadlock: {b} → {URI} → {a} → {OTHER} → {b}"
    # The other one goes on waiting, and gets it.
    second.says("unlock", uri=OTHER)
    assert first.says("lock", uri=OTHER, wait=True)["ok"]


def test_a_run_that_got_another_lock_no_longer_waits(two):
    first, second = two
    first.says("lock", uri=URI)
    second.says("lock", uri=OTHER)
    refusal(first, uri=OTHER)
    first.says("lock", uri="x:y")
    assert "deadlock" not in refusal(second, uri=URI).more


def test_only_a_cycle_that_contains_the_asker_is_a_deadlock():
    holders = {"1": "b", "2": "c", "3": "a"}
    assert find_cycle("a", "1", holders, {"b": "2", "c": "3"}) == ["a", "1", "b", "2", "c", "3"]
    assert find_cycle("a", "1", holders, {"b": "2"}) is None
    assert find_cycle("a", "1", {"1": "b", "2": "c"}, {"b": "2", "c": "1"}) is None
    assert find_cycle("a", "9", holders, {}) is None


# --- names ----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "uri",
    [
        *("a:b", "github:", "file:///x", "file:x", "file://host/x", "file:///C:/x", "urn:isbn:1"),
        *("http://x", "HTTP:x", "http:///x", "https://ann:pw@x.org:8080/a b?c#d", "  http://x\n"),
        *("http://[::1]:80/", "http://127.1/", "http://0x7f.1", "x://", "x:///y", "x://h:1"),
        *("github://acme/app issues", "http://é.example", "mailto:ann@acme"),
    ],
)
def test_a_url_that_browsers_accept_is_a_valid_lock_uri(uri: str):
    assert uri_problem(uri) is None


@pytest.mark.parametrize(
    "uri",
    [
        *("", " ", "x", "//x", "://x", "1a:b", "é:b", "a b:c", "http:", "http://", "https:///"),
        *("http://[bad", "http://[::1", "http://[1]", "http://a b", "http://x:99999", "http://x:y"),
        *("http://1.2.3.4.5", "http://256.1.1.1", "http://a<b", "http://%", "x://a b", "x://:1x"),
        *("file://[x", "http://x@", "http://1.2.3.08"),
    ],
)
def test_a_url_that_browsers_refuse_is_not_a_lock_uri(uri: str):
    assert uri_problem(uri) == INVALID_URI


def test_an_invalid_lock_uri_is_a_bad_request_and_stores_no_row(two):
    with pytest.raises(DroverError) as caught:
        two[0].says("lock", uri="github//x", wait=True)
    assert (caught.value.http_status, str(caught.value)) == (400, INVALID_URI)
    assert uri_problem("a:" + "x" * 1023) == "Invalid URI format: more than 1024 characters"
    assert LockWait.objects.count() == 0
