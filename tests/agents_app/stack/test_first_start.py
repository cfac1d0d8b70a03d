"""The user `admin`: created once, its password changed only by configuration."""

import os

import pytest
from django.contrib.auth import authenticate, get_user_model
from django.db import connection

from agents_app.stack.first_start import ADMIN, ensure_admin, migrate

pytestmark = pytest.mark.django_db


def test_a_password_is_generated_and_returned_once() -> None:
    generated = ensure_admin("")
    assert len(generated) >= 16
    assert authenticate(username=ADMIN, password=generated) is not None
    assert ensure_admin("") == ""
    assert authenticate(username=ADMIN, password=generated) is not None


def test_a_given_password_is_used_and_not_returned() -> None:
    assert ensure_admin("given") == ""
    admin = authenticate(username=ADMIN, password="given")
    assert admin is not None
    assert admin.is_superuser


def test_a_new_password_in_the_environment_replaces_a_forgotten_one() -> None:
    ensure_admin("old")
    ensure_admin("new")
    assert authenticate(username=ADMIN, password="new") is not None
    assert authenticate(username=ADMIN, password="old") is None
    assert get_user_model().objects.count() == 1


def test_a_migrated_database_is_not_migrated_again() -> None:
    assert migrate() == 0


def test_the_suite_runs_on_the_configured_database() -> None:
    wanted = {"postgres": "postgresql"}.get(os.environ.get("DROVER_TEST_DATABASE", ""), "sqlite")
    assert connection.vendor == wanted
    assert "memory" not in str(connection.settings_dict["NAME"])
