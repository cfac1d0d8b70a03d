"""How often a password may be tried: failures are counted by name and by address, for a time."""

import threading
from datetime import timedelta

import pytest
from django.db import connection

from agents_app.accounts import logins
from agents_app.accounts.logins import (
    MAX_FAILURES_OF_ADDRESS,
    MAX_FAILURES_OF_NAME,
    WINDOW,
    Locked,
    caller_network,
)
from agents_app.maintenance.retention import remove_old_rows
from agents_app.models import LoginFailure, RunEvent, Tenant
from tests.agents_app.fleet import NOON, Fleet, at

HOME, ELSEWHERE = "203.0.113.7", "198.51.100.9"


def fail(name: str = "ann", address: str = HOME, now=NOON) -> None:
    logins.record_failure(logins.begin_attempt(name, address, now), now)


def lock(name: str = "ann") -> None:
    for _ in range(MAX_FAILURES_OF_NAME):
        fail(name)


def seconds_locked(name: str = "ann", address: str = HOME, now=NOON) -> int:
    with pytest.raises(Locked) as locked:
        logins.begin_attempt(name, address, now)
    return locked.value.retry_after_seconds


def test_after_the_last_allowed_failure_the_password_is_not_checked(fleet: Fleet):
    lock()
    assert seconds_locked() == WINDOW.total_seconds()


def test_another_name_or_another_address_is_not_locked(fleet: Fleet):
    lock()
    fail("bob")
    fail("ann", ELSEWHERE)


def test_a_name_is_the_same_however_it_is_typed(fleet: Fleet):
    lock()
    for typed in ("ANN", " ann ", "a\0nn", "\uff41nn", "\U0001d400\U0001d427N", "a\u00adnn"):
        assert seconds_locked(typed), typed


def test_a_name_that_only_looks_alike_is_another_name(fleet: Fleet):
    lock()
    fail("\u0430nn")  # with a Cyrillic letter


def test_a_browser_of_an_earlier_login_is_counted_for_itself(fleet: Fleet):
    lock()
    for _ in range(MAX_FAILURES_OF_ADDRESS):
        fail_in_browser("own", succeeds=True)
    for _ in range(MAX_FAILURES_OF_NAME):
        fail_in_browser("own")
    with pytest.raises(Locked):
        fail_in_browser("own")
    fail_in_browser("another")


def fail_in_browser(device: str, *, succeeds: bool = False) -> None:
    attempt = logins.begin_attempt("ann", HOME, NOON, device)
    (logins.record_success if succeeds else logins.record_failure)(attempt, NOON)


def test_many_names_from_one_address_lock_the_address(fleet: Fleet):
    for number in range(MAX_FAILURES_OF_ADDRESS):
        fail(f"user-{number}")
    assert seconds_locked("another-user")
    fail("another-user", ELSEWHERE)


def test_failures_age_out_one_by_one(fleet: Fleet):
    for minute in range(MAX_FAILURES_OF_NAME):
        fail(now=at(minute * 60))
    assert seconds_locked(now=at(240)) == WINDOW.total_seconds() - 240
    fail(now=NOON + WINDOW)
    assert seconds_locked(now=NOON + WINDOW) == 60


def test_attempts_during_a_lock_do_not_prolong_the_lock(fleet: Fleet):
    lock()
    for second in range(20):
        seconds_locked(now=at(second))
    assert LoginFailure.objects.count() == MAX_FAILURES_OF_NAME
    fail(now=NOON + WINDOW)


def test_the_right_password_resets_its_name_alone(fleet: Fleet):
    fail("bob")
    for _ in range(MAX_FAILURES_OF_NAME - 1):
        fail()
    logins.record_success(logins.begin_attempt("ann", HOME, NOON), NOON)
    assert [row.user_name for row in LoginFailure.objects.all()] == ["bob"]


@pytest.mark.fault("F74")
def test_the_journal_tells_of_locks_and_logins(fleet: Fleet):
    lock()
    logins.record_success(logins.begin_attempt("bob", HOME, NOON), NOON)
    told = dict(RunEvent.objects.values_list("name", "detail"))
    locked = f"ann from {HOME}: too many failed attempts, locked until 12:15 UTC"
    assert told["login.locked"] == locked
    assert told["login.succeeded"] == f"bob from {HOME}"
    failed = RunEvent.objects.filter(name="login.failed").values_list("detail", flat=True)
    assert list(failed) == [f"ann from {HOME}"] * MAX_FAILURES_OF_NAME
    assert RunEvent.objects.count() == 2 + MAX_FAILURES_OF_NAME


def test_failures_before_a_success_stay_in_the_journal(fleet: Fleet):
    fail()
    logins.record_success(logins.begin_attempt("ann", HOME, NOON), NOON)
    assert not LoginFailure.objects.exists()
    names = RunEvent.objects.order_by("pk").values_list("name", flat=True)
    assert list(names) == ["login.failed", "login.succeeded"]


def test_the_failures_in_the_journal_are_limited(fleet: Fleet, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(logins, "MAX_RECORDED", 3)
    for number in range(5):
        fail(address=f"198.51.100.{number}")
    assert RunEvent.objects.filter(name="login.failed").count() == 3
    fail(now=NOON + logins.RECORDED_WITHIN)
    assert RunEvent.objects.filter(name="login.failed").count() == 4


def test_without_a_tenant_there_is_no_journal_and_no_error(db):
    lock()
    assert seconds_locked()


@pytest.mark.django_db(transaction=True)
def test_of_many_tries_at_the_same_moment_no_more_get_through():
    Tenant.objects.create(name="default")
    began, let_in = threading.Barrier(20), []

    def try_once() -> None:
        began.wait()
        try:
            let_in.append(logins.begin_attempt("ann", HOME, NOON))
        except Locked:
            pass
        finally:
            connection.close()

    threads = [threading.Thread(target=try_once) for _ in range(20)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(let_in) <= MAX_FAILURES_OF_NAME


@pytest.mark.parametrize(
    ("address", "network"),
    [
        ("203.0.113.7", "203.0.113.7"),
        ("2001:db8:1:2:3::4", "2001:db8:1:2::/64"),
        ("2001:db8:1:2:ffff::", "2001:db8:1:2::/64"),
        ("::ffff:203.0.113.7", "203.0.113.7"),
        ("", ""),
        ("x" * 100, "x" * 40),
    ],
)
def test_a_caller_is_counted_by_the_network_of_its_address(address, network):
    assert caller_network(address) == network


def test_old_failures_are_removed(fleet: Fleet):
    fail()
    remove_old_rows(NOON + timedelta(hours=23))
    assert LoginFailure.objects.exists()
    remove_old_rows(NOON + timedelta(hours=25))
    assert not LoginFailure.objects.exists()
