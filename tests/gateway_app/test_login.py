"""The login page of the admin: wrong passwords are limited, and names are not revealed."""

import pytest
from django.contrib.auth.models import User
from django.test import Client

from agents_app.accounts.logins import MAX_FAILURES_OF_NAME
from agents_app.models import RunEvent
from gateway_app.login import DEVICE_COOKIE
from tests.agents_app.fleet import Fleet

LOGIN = "/admin/login/"


@pytest.fixture(autouse=True)
def ann(fleet: Fleet) -> User:
    return User.objects.create_superuser("ann", password="right")


def log_in(name: str = "ann", password: str = "wrong", **extra):
    form = {"username": name, "password": password}
    return Client().post(f"{LOGIN}?next=/admin/", form, **extra)


@pytest.mark.parametrize("name", ["ann", "unknown"])
@pytest.mark.fault("F74")
def test_too_many_wrong_passwords_are_a_429_with_a_page(name):
    answers = [log_in(name) for _ in range(MAX_FAILURES_OF_NAME + 1)]
    assert [answer.status_code for answer in answers] == [200] * MAX_FAILURES_OF_NAME + [429]
    last = answers[-1]
    assert 0 < int(last["Retry-After"]) <= 900
    assert "no-store" in last["Cache-Control"]
    assert "for\n    15 minutes" in last.content.decode()


@pytest.mark.fault("F74")
def test_a_locked_name_is_refused_with_the_right_password():
    for _ in range(MAX_FAILURES_OF_NAME):
        log_in()
    assert log_in(password="right").status_code == 429
    assert log_in(password="right", REMOTE_ADDR="198.51.100.9").status_code == 302


def test_other_clients_at_the_same_address_do_not_lock_out_a_browser_of_an_earlier_login():
    """Guard: behind one proxy or router all have one address."""
    browser = Client()
    form = {"username": "ann", "password": "right"}
    assert browser.post(LOGIN, form).status_code == 302
    for _ in range(MAX_FAILURES_OF_NAME + 1):
        log_in()
    assert log_in(password="right").status_code == 429
    assert browser.post(LOGIN, form).status_code == 302


def test_the_cookie_of_a_browser_is_for_its_own_name_only_and_is_no_password():
    browser = Client()
    assert browser.post(LOGIN, {"username": "ann", "password": "right"}).status_code == 302
    cookie = browser.cookies[DEVICE_COOKIE]
    assert (cookie["httponly"], cookie["samesite"], cookie["path"]) == (True, "Lax", LOGIN)
    User.objects.create_superuser("bob", password="right")
    for _ in range(MAX_FAILURES_OF_NAME):
        assert browser.post(LOGIN, {"username": "ann", "password": "x"}).status_code == 200
        log_in("bob")
    assert browser.post(LOGIN, {"username": "ann", "password": "right"}).status_code == 429
    assert browser.post(LOGIN, {"username": "bob", "password": "right"}).status_code == 429


@pytest.mark.parametrize("cookie", ["", "x", "WyJhbm4iLCJ4Il0:1:x", "\x01"])
def test_a_forged_cookie_changes_nothing(cookie: str):
    browser = Client()
    browser.cookies[DEVICE_COOKIE] = cookie
    for _ in range(MAX_FAILURES_OF_NAME):
        log_in()
    assert browser.post(LOGIN, {"username": "ann", "password": "right"}).status_code == 429


@pytest.mark.parametrize("name", ["\uff21\uff2e\uff2e", "\U0001d41ann", "ann "])
def test_other_spellings_of_a_name_do_not_allow_more_attempts(name: str):
    for _ in range(MAX_FAILURES_OF_NAME):
        log_in()
    assert log_in(name, "right").status_code == 429


def test_the_right_password_resets_the_count():
    for _ in range(3):
        for _ in range(MAX_FAILURES_OF_NAME - 1):
            assert log_in().status_code == 200
        assert log_in(password="right").status_code == 302
    assert RunEvent.objects.filter(name="login.succeeded").count() == 3


def test_an_unknown_name_gets_the_same_response_as_a_known_one():
    known, unknown = log_in("ann"), log_in("unknown")
    assert known.context["form"].errors == unknown.context["form"].errors


def test_the_login_of_a_user_without_staff_status_is_a_failure():
    User.objects.create_user("reader", password="right")
    for _ in range(MAX_FAILURES_OF_NAME):
        assert log_in("reader", "right").status_code == 200
    assert log_in("reader", "right").status_code == 429


def test_a_forwarding_header_does_not_change_the_counted_address():
    for number in range(MAX_FAILURES_OF_NAME):
        log_in(headers={"X-Forwarded-For": f"10.0.0.{number}", "X-Real-IP": f"10.0.0.{number}"})
    assert log_in(headers={"X-Forwarded-For": "10.0.0.99"}).status_code == 429


def test_a_login_without_a_csrf_token_is_not_counted():
    form = {"username": "ann", "password": "right"}
    for _ in range(MAX_FAILURES_OF_NAME + 1):
        assert Client(enforce_csrf_checks=True).post(LOGIN, form).status_code == 403
    assert log_in(password="right").status_code == 302


@pytest.mark.parametrize(
    "target",
    ["//evil.example", "https://evil.example", "/\\evil.example", "javascript:alert(1)", "\t//x"],
)
def test_the_login_does_not_redirect_to_other_hosts(target):
    form = {"username": "ann", "password": "right", "next": target}
    answer = Client().post(LOGIN, form, query_params={"next": target})
    assert (answer.status_code, answer["Location"]) == (302, "/admin/")
