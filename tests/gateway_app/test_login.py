"""The admin's login page: wrong passwords are counted, people are told, nobody learns names."""

import pytest
from django.contrib.auth.models import User
from django.test import Client

from agents_app.accounts.logins import MAX_FAILURES_OF_NAME
from agents_app.models import RunEvent
from tests.agents_app.fleet import Fleet

LOGIN = "/admin/login/"


@pytest.fixture(autouse=True)
def ann(fleet: Fleet) -> User:
    return User.objects.create_superuser("ann", password="right")


def log_in(name: str = "ann", password: str = "wrong", **extra):
    form = {"username": name, "password": password}
    return Client().post(f"{LOGIN}?next=/admin/", form, **extra)


@pytest.mark.parametrize("name", ["ann", "nobody"])
@pytest.mark.fault("F74")
def test_too_many_wrong_passwords_are_a_429_that_people_understand(name):
    answers = [log_in(name) for _ in range(MAX_FAILURES_OF_NAME + 1)]
    assert [answer.status_code for answer in answers] == [200] * MAX_FAILURES_OF_NAME + [429]
    last = answers[-1]
    assert 0 < int(last["Retry-After"]) <= 900
    assert "no-store" in last["Cache-Control"]
    assert "for\n    15 minutes" in last.content.decode()


@pytest.mark.fault("F74")
def test_a_locked_name_is_not_let_in_with_the_right_password_either():
    for _ in range(MAX_FAILURES_OF_NAME):
        log_in()
    assert log_in(password="right").status_code == 429
    assert log_in(password="right", REMOTE_ADDR="198.51.100.9").status_code == 302


def test_the_right_password_resets_the_count():
    for _ in range(3):
        for _ in range(MAX_FAILURES_OF_NAME - 1):
            assert log_in().status_code == 200
        assert log_in(password="right").status_code == 302
    assert RunEvent.objects.filter(name="login.succeeded").count() == 3


def test_what_an_unknown_name_is_told_is_what_a_known_one_is_told():
    known, unknown = log_in("ann"), log_in("nobody")
    assert known.context["form"].errors == unknown.context["form"].errors


def test_somebody_who_is_no_staff_counts_as_a_failure():
    User.objects.create_user("guest", password="right")
    for _ in range(MAX_FAILURES_OF_NAME):
        assert log_in("guest", "right").status_code == 200
    assert log_in("guest", "right").status_code == 429


def test_a_header_that_anybody_can_send_does_not_change_who_they_are():
    for number in range(MAX_FAILURES_OF_NAME):
        log_in(headers={"X-Forwarded-For": f"10.0.0.{number}", "X-Real-IP": f"10.0.0.{number}"})
    assert log_in(headers={"X-Forwarded-For": "10.0.0.99"}).status_code == 429


def test_without_a_csrf_token_nothing_is_tried_or_counted():
    form = {"username": "ann", "password": "right"}
    for _ in range(MAX_FAILURES_OF_NAME + 1):
        assert Client(enforce_csrf_checks=True).post(LOGIN, form).status_code == 403
    assert log_in(password="right").status_code == 302


@pytest.mark.parametrize(
    "target",
    ["//evil.example", "https://evil.example", "/\\evil.example", "javascript:alert(1)", "\t//x"],
)
def test_nobody_is_led_elsewhere_by_the_login(target):
    form = {"username": "ann", "password": "right", "next": target}
    answer = Client().post(LOGIN, form, query_params={"next": target})
    assert (answer.status_code, answer["Location"]) == (302, "/admin/")
