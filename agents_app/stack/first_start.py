"""Prepares the database before the processes start: connection, migrations, user `admin`."""

import secrets

from django.contrib.auth import get_user_model
from django.contrib.auth.password_validation import validate_password
from django.core.exceptions import ValidationError
from django.core.management import call_command
from django.db import Error as DatabaseProblem
from django.db import connection
from django.db.migrations.executor import MigrationExecutor

from agents_app import __version__
from agents_app.database import migrations_of_code
from agents_app.errors import ConfigError

ADMIN = "admin"


def ensure_database() -> None:
    try:
        connection.ensure_connection()
    except DatabaseProblem as error:
        # Neither driver puts the password into its message.
        reason = " ".join(str(error).split())
        raise ConfigError(f"cannot open the database: {reason}. Check DATABASE_URL.") from None


def migrate() -> int:
    """Apply migrations; returns their number. A database of a newer version is refused."""
    executor = MigrationExecutor(connection)
    applied = {name for app, name in executor.loader.applied_migrations if app == "agents_app"}
    if unknown := applied - set(migrations_of_code()):
        raise ConfigError(
            f"the database has the schema {max(unknown)} of a newer version of Drover than this "
            f"one ({__version__}): install the newer version, or restore a backup of this version; "
            "nothing was changed"
        )
    plan = executor.migration_plan(executor.loader.graph.leaf_nodes())
    if plan:
        call_command("migrate", interactive=False, verbosity=0)
    return len(plan)


def _check_password(password: str) -> None:
    """Refuse a weak password before it is stored; a password that is stored already stays valid."""
    try:
        validate_password(password, get_user_model()(username=ADMIN))
    except ValidationError as error:
        raise ConfigError(
            f"DROVER_ADMIN_PASSWORD is too weak: {' '.join(error.messages)}"
        ) from None


def ensure_admin(password: str) -> str:
    """Create or update the user `admin`; returns the generated password of a new user, once."""
    users = get_user_model().objects
    admin = users.filter(username=ADMIN).first()
    if admin is None:
        generated = "" if password else secrets.token_urlsafe(12)
        _check_password(password or generated)
        users.create_superuser(ADMIN, password=password or generated)
        return generated
    if password and not admin.check_password(password):
        _check_password(password)
        admin.set_password(password)
        admin.save(update_fields=["password"])
    return ""
