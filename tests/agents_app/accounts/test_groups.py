"""The groups of a new installation: what their members may see and do."""

import pytest
from django.contrib.auth.models import Group, User
from django.core.management import call_command
from django.test import Client

import scheduler_project.urls  # noqa: F401  # which finds the pages
from agents_app.accounts.groups import ADMIN, OPERATOR, RIGHTS, VIEWER, create_groups
from agents_app.models import Tenant
from gateway_app.access import scopes_of
from tests.agents_app.fleet import Fleet

pytestmark = pytest.mark.django_db


def member(name: str) -> User:
    user = User.objects.create_user(f"one-{name}", password="secret", is_staff=True)
    user.groups.add(Group.objects.get(name=name))
    return user


def client_of(name: str) -> Client:
    client = Client()
    client.force_login(member(name))
    return client


def test_a_migrated_database_has_the_groups():
    assert set(Group.objects.values_list("name", flat=True)) >= set(RIGHTS)


@pytest.mark.parametrize(
    ("name", "scopes"),
    [(VIEWER, {"read"}), (OPERATOR, {"read", "operate"}), (ADMIN, {"read", "operate", "admin"})],
)
def test_a_member_has_the_scopes_of_the_group_in_the_api(name: str, scopes: set[str]):
    assert set(scopes_of(member(name))) == scopes


def test_each_group_has_the_rights_of_the_one_before():
    rights = [
        set(Group.objects.get(name=name).permissions.values_list("codename", flat=True))
        for name in (VIEWER, OPERATOR, ADMIN)
    ]
    assert rights[0] < rights[1] < rights[2]
    assert all(right.startswith("view_") for right in rights[0])
    assert not any(right.startswith("delete_") for right in rights[1])


@pytest.mark.parametrize(
    ("page", "viewer", "operator", "admin"),
    [
        ("/admin/runs/", 200, 200, 200),
        ("/admin/rules/", 200, 200, 200),
        ("/admin/schedules/add/", 403, 200, 200),
        ("/admin/credentials/", 403, 200, 200),
        ("/admin/credentials/add/", 403, 403, 200),
        ("/admin/webhook-sources/add/", 403, 403, 200),
        ("/admin/api-tokens/", 403, 403, 200),
        ("/admin/failed-logins/", 403, 403, 200),
        ("/admin/users/", 403, 403, 200),
        ("/admin/periodic-tasks/", 403, 403, 200),
    ],
)
def test_pages_of_each_group(fleet: Fleet, page: str, viewer: int, operator: int, admin: int):
    statuses = [client_of(name).get(page).status_code for name in (VIEWER, OPERATOR, ADMIN)]
    assert statuses == [viewer, operator, admin]


@pytest.mark.parametrize(("name", "status"), [(VIEWER, 403), (OPERATOR, 302), (ADMIN, 302)])
def test_a_viewer_acts_on_nothing_and_an_operator_on_agents(fleet: Fleet, name: str, status: int):
    agent = fleet.agent()
    act = client_of(name).post(f"/admin/agents/{agent.pk}/act/pause/", {"text": "x"})
    assert act.status_code == status
    agent.refresh_from_db()
    assert (agent.paused_at is not None) == (status == 302)


def test_in_the_api_a_member_acts_for_the_default_tenant_only(fleet: Fleet):
    Fleet(Tenant.objects.create(name="acme")).agent("theirs")
    fleet.agent("ours")
    found = client_of(OPERATOR).get("/v1/agents").json()["agents"]
    assert [agent["name"] for agent in found] == ["ours"]


def test_a_group_that_was_changed_or_deleted_is_the_operators_decision():
    """A changed group keeps its rights; a deleted group is created again."""
    Group.objects.get(name=OPERATOR).permissions.clear()
    Group.objects.get(name=VIEWER).delete()
    create_groups()
    assert not Group.objects.get(name=OPERATOR).permissions.exists()
    assert Group.objects.get(name=VIEWER).permissions.exists()


def test_the_groups_are_created_after_a_migration():
    Group.objects.all().delete()
    call_command("migrate", verbosity=0)
    assert Group.objects.filter(name__in=RIGHTS).count() == len(RIGHTS)
