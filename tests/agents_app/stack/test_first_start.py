"""The user `admin`: created once, its password changed only by configuration."""

import os

import pytest
from django.contrib.auth import authenticate, get_user_model
from django.db import connection
from django.db.migrations.recorder import MigrationRecorder

from agents_app.errors import ConfigError
from agents_app.stack.first_start import ADMIN, ensure_admin, migrate

pytestmark = pytest.mark.django_db
GIVEN = "given by the operator"


def test_a_password_is_generated_and_returned_once() -> None:
    generated = ensure_admin("")
    assert len(generated) >= 16
    assert authenticate(username=ADMIN, password=generated) is not None
    assert ensure_admin("") == ""
    assert authenticate(username=ADMIN, password=generated) is not None


def test_a_given_password_is_used_and_not_returned() -> None:
    assert ensure_admin(GIVEN) == ""
    admin = authenticate(username=ADMIN, password=GIVEN)
    assert admin is not None
    assert admin.is_superuser


def test_a_new_password_in_the_environment_replaces_a_forgotten_one() -> None:
    ensure_admin(f"old {GIVEN}")
    ensure_admin(f"new {GIVEN}")
    assert authenticate(username=ADMIN, password=f"new {GIVEN}") is not None
    assert authenticate(username=ADMIN, password=f"old {GIVEN}") is None
    assert get_user_model().objects.count() == 1


@pytest.mark.parametrize("password", ["qx7!k2", "password123", "1234567890123"])
def test_a_weak_password_is_refused_and_not_repeated_in_the_message(password: str) -> None:
    with pytest.raises(ConfigError, match="DROVER_ADMIN_PASSWORD is too weak: ") as refused:
        ensure_admin(password)
    assert password not in str(refused.value)
    assert not get_user_model().objects.exists()


def test_a_weak_password_of_an_earlier_version_stays_valid() -> None:
    get_user_model().objects.create_superuser(ADMIN, password="short")
    ensure_admin("short")
    assert authenticate(username=ADMIN, password="short") is not None


def test_a_migrated_database_is_not_migrated_again() -> None:
    assert migrate() == 0


def test_a_database_of_a_newer_version_is_refused() -> None:
    """Otherwise processes would start that never begin any work."""
    MigrationRecorder(connection).record_applied("agents_app", "9999_newer")
    with pytest.raises(ConfigError, match="9999_newer of a newer version of Drover"):
        migrate()


def test_the_suite_runs_on_the_configured_database() -> None:
    wanted = {"postgres": "postgresql"}.get(os.environ.get("DROVER_TEST_DATABASE", ""), "sqlite")
    assert connection.vendor == wanted
    assert "memory" not in str(connection.settings_dict["NAME"])
