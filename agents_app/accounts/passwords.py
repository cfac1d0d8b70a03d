"""Passwords of users of the dashboard."""

from datetime import datetime

from django.contrib.auth.models import User
from django.contrib.auth.password_validation import validate_password
from django.core.exceptions import ValidationError

from agents_app.accounts.login_links import find_user, record_password_change
from agents_app.database import in_transaction
from agents_app.errors import Refused


def check_password_strength(password: str, user: User) -> None:
    """Raises Refused with all reasons if the validators of the settings refuse the password."""
    try:
        validate_password(password, user)
    except ValidationError as error:
        raise Refused(f"the password is too weak: {' '.join(error.messages)}") from None


def change_password(user_name: str, password: str, by: str, now: datetime) -> None:
    """Set the password of the user; Django ends the user's sessions. Recorded in the audit."""
    user = find_user(user_name)
    check_password_strength(password, user)
    user.set_password(password)

    def change() -> None:
        user.save(update_fields=["password"])
        record_password_change(user, by, now)

    in_transaction(change)
