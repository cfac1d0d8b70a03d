"""Whether a PostgreSQL server checks the password of its user, for each method of pg_hba.conf."""

from typing import Any

import pytest
from django.db import connections

from agents_app.conf import database_settings
from agents_app.database.postgres import PostgresEngine
from tests.parts.postgres_part import PostgresServer


@pytest.mark.parametrize(("method", "accepts"), [("trust", True), ("scram-sha-256", False)])
def test_a_server_that_does_not_check_passwords_is_found(
    postgres: PostgresServer, django_db_blocker: Any, method: str, accepts: bool
):
    user = f"checked_{method.partition('-')[0]}"
    postgres.add_user(user, "right", method)
    address = f"postgresql://{user}:right@127.0.0.1:{postgres.port}/postgres"
    made = connections.configure_settings({"default": database_settings(address)})["default"]
    connections.settings[user] = made
    with django_db_blocker.unblock():
        try:
            assert PostgresEngine(user).accepts_wrong_password() is accepts
        finally:
            connections[user].close()
            del connections.settings[user]
