"""The groups viewer, operator and admin, which a new installation has.

A group that exists is not changed: its rights are the operator's to decide.
"""

from typing import Any

from django.contrib.auth.models import Group, Permission
from django.db.models import Q

VIEWER, OPERATOR, ADMIN = "viewer", "operator", "admin"
# Tables that viewers do not see: who may use the installation, and the names of secrets. Operators
# see the second.
ACCOUNTS = ("apitoken", "loginfailure")
SECRETS = ("credential", "webhooksecret")
# The tables whose rows an operator pauses, starts, stops, replays, drops and releases.
OPERATED = (
    *("agent", "schedule", "run", "workitem", "delivery", "rulestate", "resourcelock"),
    *("message", "firing"),
)
ADMINISTERED_APPS = ("agents_app", "auth", "django_celery_beat")


def create_groups(using: str = "default", **_: Any) -> None:
    """Create the groups that are missing, with their rights; called after each migration, when
    Django has created the rights."""
    groups = Group.objects.using(using)
    present = set(groups.filter(name__in=RIGHTS).values_list("name", flat=True))
    for name, rights in RIGHTS.items():
        if name not in present:
            found = Permission.objects.using(using).filter(rights)
            groups.create(name=name).permissions.set(found)


def _may(verb: str, *tables: str) -> Q:
    names = [f"{verb}_{table}" for table in tables]
    return Q(content_type__app_label="agents_app", codename__in=names)


_VIEW_ALL = Q(content_type__app_label="agents_app", codename__startswith="view_")
_VIEW = _VIEW_ALL & ~_may("view", *ACCOUNTS, *SECRETS)
RIGHTS = {
    VIEWER: _VIEW,
    OPERATOR: _VIEW
    | _may("view", *SECRETS)
    | _may("change", *OPERATED)
    | _may("add", "schedule", "message"),
    ADMIN: Q(content_type__app_label__in=ADMINISTERED_APPS),
}
