"""One-time login links and passwords."""

from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta
from io import StringIO

import pytest
from django.contrib.auth.models import User
from django.db import connection

from agents_app.accounts import login_links
from agents_app.errors import NotFound, Refused
from agents_app.models import RunEvent
from tests.agents_app.fleet import Fleet
from tests.agents_app.management.calling import call

NOW = datetime(2026, 1, 1, tzinfo=UTC)


def new_link() -> str:
    User.objects.create_superuser("anna", password="long enough for anna")
    return login_links.create_link_token("anna", "root", NOW)


def test_a_link_logs_in_once_and_both_are_in_the_audit(fleet: Fleet) -> None:
    token = new_link()
    soon = NOW + timedelta(minutes=1)
    assert login_links.find_link_user(token, soon) is not None
    used = login_links.use_link(token, "127.0.0.1", soon)
    assert used is not None
    assert used.username == "anna"
    assert login_links.use_link(token, "127.0.0.1", soon) is None
    assert login_links.find_link_user(token, soon) is None
    events = list(RunEvent.objects.filter(name__startswith="login.").order_by("pk"))
    assert [(one.name, one.actor) for one in events] == [
        ("login.link_created", "root"),
        ("login.succeeded", "anna"),
    ]
    assert token not in "".join(one.detail for one in events)


@pytest.mark.parametrize("change", ["late", "password", "inactive", "forged"])
def test_a_link_is_refused_when_it_is(fleet: Fleet, change: str) -> None:
    token, at = new_link(), NOW + timedelta(minutes=1)
    anna = User.objects.get(username="anna")
    if change == "late":
        at = NOW + login_links.VALID_FOR
    elif change == "password":
        anna.set_password("another password of anna")
    elif change == "inactive":
        anna.is_active = False
    else:
        token = token[:-1] + ("A" if token[-1] != "A" else "B")
    anna.save()
    assert login_links.find_link_user(token, at) is None
    assert login_links.use_link(token, "127.0.0.1", at) is None


def test_of_many_uses_at_the_same_moment_one_logs_in(durable_fleet: Fleet) -> None:
    token = new_link()

    def use(number: int) -> bool:
        try:
            at = NOW + timedelta(seconds=number)
            return login_links.use_link(token, "127.0.0.1", at) is not None
        finally:
            connection.close()

    with ThreadPoolExecutor(8) as pool:
        assert sum(pool.map(use, range(1, 9))) == 1


def test_users_that_may_not_log_in_get_no_link(fleet: Fleet) -> None:
    with pytest.raises(NotFound, match="there is no user 'ghost'"):
        login_links.create_link_token("ghost", "root", NOW)
    User.objects.create_user("guest")
    with pytest.raises(Refused, match="tick Active and Staff status"):
        login_links.create_link_token("guest", "root", NOW)


def test_a_password_is_read_from_standard_input_and_checked(
    fleet: Fleet, monkeypatch: pytest.MonkeyPatch
) -> None:
    new_link()
    monkeypatch.setattr("sys.stdin", StringIO("short\n"))
    refused = call("password", "anna")
    assert (refused.code, "the password is too weak: " in refused.err) == (1, True)
    monkeypatch.setattr("sys.stdin", StringIO("a-much-longer-password\n"))
    assert call("password", "anna").code == 0
    assert User.objects.get(username="anna").check_password("a-much-longer-password")
    assert RunEvent.objects.filter(name="login.password_changed").count() == 1
