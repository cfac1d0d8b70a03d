"""Every tenant has its own agents, settings and errors, from the files of its own project."""

from pathlib import Path

import pytest

from agents_app.accounts import change_project, tenants
from agents_app.models import Agent, Schedule, Tenant
from agents_app.project import sync as module
from agents_app.project.sync import sync_tenant
from agents_app.reports import in_project
from tests.agents_app.fleet import NOON, Fleet, at
from tests.agents_app.project_files import Project


@pytest.fixture
def acme(tmp_path: Path) -> Project:
    return Project(tmp_path / "acme")


@pytest.fixture
def tenant(fleet: Fleet, acme: Project) -> Tenant:
    return tenants.create_tenant("acme", "ann", NOON, str(acme.root))[0]


def agents_of(name: str) -> dict[str, int]:
    rows = Agent.objects.filter(tenant__name=name, removed_at__isnull=True)
    return dict(rows.order_by("name").values_list("name", "scale"))


def test_two_tenants_have_agents_of_the_same_name(project: Project, acme: Project, tenant: Tenant):
    project.agent("reporter", "scale: 2\nschedule: every 5 minutes")
    project.agent("mine")
    acme.agent("reporter", "scale: 3\nschedule: daily")
    project.sync()
    sync_tenant(tenant, NOON)
    assert (agents_of("default"), agents_of("acme")) == (
        {"mine": 1, "reporter": 2},
        {"reporter": 3},
    )
    texts = Schedule.objects.order_by("text").values_list("tenant__name", "text")
    assert list(texts) == [("acme", "daily"), ("default", "every 5 minutes")]
    # An agent that leaves one project stays in the other.
    (project.root / "agents" / "reporter" / "SKILL.md").unlink()
    project.sync(at(60))
    assert (agents_of("default"), agents_of("acme")) == ({"mine": 1}, {"reporter": 3})


def test_settings_of_a_tenant_come_from_its_own_config(
    project: Project, acme: Project, tenant: Tenant
):
    project.config('scale = 2\nhistory_retention_days = 7\n[webhooks.door]\ntype = "generic"\n')
    acme.config("scale = 5\nhistory_retention_days = 30\n[budget]\nusd_per_month = 3\n")
    project.sync()
    sync_tenant(tenant, NOON)
    default, theirs = Tenant.objects.get(name="default"), Tenant.objects.get(name="acme")
    assert (default.scale, theirs.scale) == (2, 5)
    days = [row.settings["history_retention_days"] for row in (default, theirs)]
    assert days == [7, 30]
    assert ("budget" in default.settings, "budget" in theirs.settings) == (False, True)
    assert [row.webhook_sources.count() for row in (default, theirs)] == [1, 0]


def test_agents_of_a_new_tenant_with_a_broken_config_run_with_the_defaults(
    acme: Project, tenant: Tenant
):
    acme.config("scale = many\n")
    acme.agent()
    sync_tenant(tenant, NOON)
    assert agents_of("acme") == {"reporter": 1}


def test_errors_are_stored_with_the_tenant_of_the_project(
    project: Project, acme: Project, tenant: Tenant
):
    project.agent("fine")
    acme.break_agent("broken")
    project.sync()
    sync_tenant(tenant, NOON)
    errors = {row.name: row.definition_errors for row in Tenant.objects.all()}
    assert (errors["default"], len(errors["acme"])) == ([], 1)
    assert agents_of("acme") == {"broken": 0}


def test_many_errors_are_stored_as_the_first_ones_and_a_number(
    acme: Project, tenant: Tenant, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(module, "MOST_ERRORS", 2)
    for number in range(5):
        acme.break_agent(f"broken-{number}")
    sync_tenant(tenant, NOON)
    tenant.refresh_from_db()
    assert len(tenant.definition_errors) == 3
    assert tenant.definition_errors[-1] == "3 more errors: manage.py discover lists them"


def test_a_large_project_is_written_in_several_transactions(
    acme: Project, tenant: Tenant, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(module, "AGENTS_IN_ONE_COMMIT", 2)
    written: list[int] = []

    def counted(change):
        before = Agent.objects.count()
        result = change()
        written.append(Agent.objects.count() - before)
        return result

    monkeypatch.setattr(module, "in_transaction", counted)
    for number in range(5):
        acme.agent(f"agent-{number}")
    sync_tenant(tenant, NOON)
    assert [count for count in written if count] == [2, 2, 1]


def test_a_directory_that_is_gone_keeps_the_agents(acme: Project, tenant: Tenant):
    acme.agent()
    sync_tenant(tenant, NOON)
    acme.root.rename(acme.root.with_name("elsewhere"))
    assert sync_tenant(tenant, at(60)) is None
    tenant.refresh_from_db()
    assert tenant.definition_errors == [
        f"the project directory {acme.root} does not exist: create it, "
        "or set another one: manage.py tenant project acme DIR"
    ]
    assert agents_of("acme") == {"reporter": 1}
    acme.root.with_name("elsewhere").rename(acme.root)
    sync_tenant(tenant, at(120))
    tenant.refresh_from_db()
    assert tenant.definition_errors == []


def test_a_directory_that_has_become_a_link_to_another_project_is_not_read(
    project: Project, acme: Project, tenant: Tenant
):
    project.agent("secret-agent")
    acme.root.rmdir()
    acme.root.symlink_to(project.root)
    assert sync_tenant(tenant, NOON) is None
    assert agents_of("acme") == {}


def test_a_changed_directory_replaces_the_agents(
    acme: Project, tenant: Tenant, tmp_path: Path, fleet: Fleet
):
    acme.agent("old")
    acme.agent("both")
    sync_tenant(tenant, NOON)
    other = Project(tmp_path / "other")
    other.agent("both", "scale: 4")
    tenant.project = change_project(tenant, str(other.root), "ann", NOON)
    sync_tenant(tenant, at(60))
    assert agents_of("acme") == {"both": 4}
    # Agents of the old directory are listed only on request.
    assert Agent.objects.filter(name="old").exists()
    assert list(in_project(tenant.agents.all()).values_list("name", flat=True)) == ["both"]


def test_a_removed_agent_of_the_same_directory_stays_listed(acme: Project, tenant: Tenant):
    acme.agent("old")
    sync_tenant(tenant, NOON)
    (acme.root / "agents" / "old" / "SKILL.md").unlink()
    sync_tenant(tenant, at(60))
    assert list(in_project(tenant.agents.all()).values_list("name", flat=True)) == ["old"]


def test_a_tenant_that_is_disabled_or_gone_meanwhile_gets_no_agents(acme: Project, tenant: Tenant):
    acme.agent()
    tenants.disable_tenant(tenant, "ann", NOON)
    sync_tenant(tenant, NOON)
    assert not Agent.objects.exists()
    tenants.delete_tenant(tenant, "ann", NOON)
    sync_tenant(Tenant(name="acme", project=str(acme.root)), NOON)
    assert not Tenant.objects.filter(name="acme").exists()


def test_files_of_a_tenant_cannot_refer_to_variables_of_the_installation(
    acme: Project, tenant: Tenant, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setenv("GITHUB_TOKEN", "of-the-operator")
    acme.config(
        '[webhooks.door]\ntype = "github"\nsecrets = ["env:GITHUB_TOKEN"]\n'
        '[[notify]]\nurl = "env:GITHUB_TOKEN"\non = ["run.failed"]\n'
    )
    sync_tenant(tenant, NOON)
    tenant.refresh_from_db()
    assert len(tenant.definition_errors) == 2
    assert all("belong to the tenant default" in error for error in tenant.definition_errors)


def test_a_fleet_file_of_a_tenant_sees_no_variables_of_the_installation(
    acme: Project, tenant: Tenant, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setenv("OFFICE", "of-the-operator")
    (acme.root / "herdctl.yaml").write_text(
        "version: 1\nfleet: {name: crew}\nagents:\n  - path: ./forge.yaml\n"
    )
    (acme.root / "forge.yaml").write_text(
        "name: forge\ndescription: ${OFFICE:-nothing}\nsystem_prompt: Work.\n"
    )
    found = sync_tenant(tenant, NOON)
    assert found is not None and found.format == "herdctl"
    assert "of-the-operator" not in repr(found)
    assert Agent.objects.get(name="forge").description == "nothing"


@pytest.mark.django_db
def test_a_project_without_retention_stores_none(project: Project):
    """The tenant has the retention of the default tenant, also after that one changes."""
    project.config("scale = 2")
    project.sync()
    assert "history_retention_days" not in Tenant.objects.get(name="default").settings
