"""Synchronizing new, changed, invalid and removed agents."""

import shutil

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from agents_app.errors import Refused
from agents_app.models import Agent, RunEvent, Tenant
from agents_app.runs import control
from tests.agents_app.fleet import NOON, Fleet, at, run_states, work_states
from tests.agents_app.project_files import Project, the_agent

pytestmark = pytest.mark.django_db


def warnings(caplog) -> int:
    return sum(record.levelname == "WARNING" for record in caplog.records)


# --- agents ---------------------------------------------------------------------------------


def test_a_new_directory_is_a_new_agent(project: Project):
    directory = project.agent(frontmatter="scale: 3\ntimeout: 60\nretries: 2", body="Count.")
    project.sync()
    agent = the_agent()
    assert (agent.scale, agent.timeout_seconds, agent.retries) == (3, 60, 2)
    assert (agent.instructions.strip(), agent.command) == ("Count.", ["true"])
    assert (agent.directory, agent.revision, agent.enabled) == (str(directory), 1, True)
    assert Tenant.objects.get().name == "default"


def test_an_unchanged_agent_is_not_written_again(project: Project):
    project.agent()
    project.sync()
    before = the_agent().updated_at
    project.sync(at(60))
    agent = the_agent()
    assert (agent.revision, agent.updated_at) == (1, before)


def test_a_changed_file_is_a_new_revision_of_the_same_agent(project: Project):
    project.agent(body="Old.")
    project.sync()
    first = the_agent()
    project.agent(frontmatter="scale: 2", body="New.")
    project.sync(at(60))
    agent = the_agent()
    assert (agent.pk, agent.revision, agent.scale) == (first.pk, 2, 2)
    assert agent.instructions.strip() == "New."


def test_a_removed_directory_disables_the_agent_and_keeps_its_history(
    project: Project, fleet: Fleet
):
    directory = project.agent()
    project.sync()
    agent = the_agent()
    fleet.finish(fleet.start(fleet.enqueue(agent)))
    shutil.rmtree(directory)
    project.sync(at(60))
    agent.refresh_from_db()
    assert (agent.removed_at, agent.enabled) == (at(60), False)
    assert run_states(agent) == ["succeeded"]


def test_a_directory_that_comes_back_enables_the_same_agent(project: Project):
    directory = project.agent()
    project.sync()
    first = the_agent()
    shutil.rmtree(directory)
    project.sync(at(60))
    project.agent()
    project.sync(at(120))
    agent = the_agent()
    assert (agent.pk, agent.enabled, agent.removed_at) == (first.pk, True, None)


def test_a_file_that_does_not_parse_leaves_the_old_definition_and_says_what_is_wrong(
    project: Project,
):
    project.agent(frontmatter="scale: 2", body="Old.")
    project.sync()
    project.break_agent()
    project.sync(at(60))
    agent = the_agent()
    assert (agent.scale, agent.instructions.strip(), agent.enabled) == (2, "Old.", True)
    assert agent.definition_error.startswith("agents/reporter/SKILL.md:4")
    assert "scale" in agent.definition_error
    assert agent.definition_error in Tenant.objects.get().definition_errors


def test_a_fixed_file_takes_effect_and_the_error_is_gone(project: Project):
    project.agent()
    project.sync()
    project.break_agent()
    project.sync(at(60))
    project.agent()
    project.sync(at(120))
    assert the_agent().definition_error == ""
    assert Tenant.objects.get().definition_errors == []


def test_an_agent_that_never_parsed_is_shown_and_does_not_run(project: Project):
    project.break_agent()
    project.sync()
    agent = the_agent()
    assert (agent.enabled, agent.definition_error != "") == (False, True)


def test_one_broken_agent_does_not_keep_the_others_from_loading(project: Project):
    project.break_agent("broken")
    project.agent("fine")
    project.sync()
    assert the_agent("fine").enabled


def test_all_errors_of_an_agent_are_shown(project: Project):
    project.break_agent(frontmatter="scale: many\ntimeout: soon")
    project.sync()
    error = the_agent().definition_error
    assert "scale" in error
    assert "timeout" in error


def test_an_error_is_logged_when_it_appears_and_not_every_time_it_is_seen(project: Project, caplog):
    project.break_agent(frontmatter="scale: many\ntimeout: soon")
    project.sync()
    first = warnings(caplog)
    assert first >= 1
    for minute in range(3):
        project.sync(at(minutes=minute))
    assert warnings(caplog) == first


def test_a_project_that_cannot_be_listed_disables_no_agent(project: Project):
    """A disk that is briefly not mounted must not stop a fleet."""
    project.agent()
    project.sync()
    project.root.rename(project.root.with_name("elsewhere"))
    project.sync(at(60))
    assert the_agent().enabled
    assert Tenant.objects.get().definition_errors


def test_a_concurrent_pause_is_not_overwritten(project: Project):
    """A pause between the read and the write of a sync must not be lost."""
    project.agent(frontmatter="schedule: '@hourly'", body="Old.")
    project.sync()
    project.agent(frontmatter="schedule: '@daily'", body="New.")
    with CaptureQueriesContext(connection) as queries:
        project.sync(at(60))
    updates = [query["sql"] for query in queries if query["sql"].startswith("UPDATE")]
    written = [sql for sql in updates if '"paused_at" =' in sql or '"fire_count" =' in sql]
    assert updates
    assert written == []


# --- scale ----------------------------------------------------------------------------------


def test_a_scale_set_by_a_person_holds_until_the_file_changes(project: Project):
    project.agent()
    project.sync()
    control.scale_agent(the_agent(), 5, "ann", NOON)
    project.sync(at(60))
    assert the_agent().scale == 5
    project.agent(frontmatter="scale: 2")
    project.sync(at(120))
    assert the_agent().scale == 2


def test_a_raised_scale_in_the_file_admits_queued_work(project: Project):
    project.agent()
    project.sync()
    fleet = Fleet(Tenant.objects.get())
    for _ in range(3):
        fleet.enqueue(the_agent())
    project.agent(frontmatter="scale: 2")
    project.sync(at(60))
    assert work_states(the_agent()) == ["admitted", "admitted", "queued"]


def test_scale_zero_in_the_file_disables_the_agent(project: Project):
    project.agent(frontmatter="scale: 0")
    project.sync()
    assert not the_agent().enabled


# --- the project's own file -----------------------------------------------------------------


def test_the_projects_cap_and_retention_are_the_tenants(project: Project):
    project.config("scale = 3\nhistoryRetentionDays = 2\n")
    project.sync()
    tenant = Tenant.objects.get()
    assert (tenant.scale, tenant.settings["history_retention_days"]) == (3, 2)


def test_a_cap_set_by_a_person_holds_until_the_file_changes(project: Project):
    project.config("scale = 3\n")
    project.sync()
    Tenant.objects.update(scale=9)
    project.sync(at(60))
    assert Tenant.objects.get().scale == 9
    project.config("scale = 4\n")
    project.sync(at(120))
    assert Tenant.objects.get().scale == 4


def test_a_raised_cap_admits_queued_work_at_once(project: Project):
    project.config("scale = 1\n")
    project.agent(frontmatter="scale: 5")
    project.sync()
    fleet = Fleet(Tenant.objects.get())
    for _ in range(3):
        fleet.enqueue(the_agent())
    project.config("scale = 2\n")
    project.sync(at(60))
    assert work_states(the_agent()) == ["admitted", "admitted", "queued"]


def test_a_broken_project_file_leaves_the_old_settings_in_force(project: Project):
    project.config("scale = 3\nhistoryRetentionDays = 2\n")
    project.agent()
    project.sync()
    project.config("scale = \n")
    project.sync(at(60))
    tenant = Tenant.objects.get()
    assert (tenant.scale, tenant.settings["history_retention_days"]) == (3, 2)
    assert tenant.definition_errors


# --- agents that are gone ---------------------------------------------------------------------


def test_a_deleted_agent_that_never_was_valid_disappears(project: Project):
    """Guard: its row was kept for a history that it does not have."""
    project.break_agent("typo")
    project.agent("fine")
    project.sync()
    project.break_agent("fine")
    for name in ("typo", "fine"):
        shutil.rmtree(project.root / "agents" / name)
    project.sync(at(60))
    assert the_agent("fine").removed_at == at(60)
    assert not Agent.objects.filter(name="typo").exists()


def test_the_audit_of_an_agent_that_never_was_valid_remains(project: Project):
    directory = project.agent(frontmatter="scale: many")
    project.sync()
    control.pause_agent(the_agent(), "ann", NOON)
    name = the_agent().name
    shutil.rmtree(directory)
    project.sync(at(60))
    assert not Agent.objects.exists()
    kept = RunEvent.objects.get()
    assert (kept.name, kept.actor, kept.detail) == ("agent.paused", "ann", f"{name}: ann")


def test_an_agent_that_never_was_valid_says_so_when_it_is_asked_to_run(project: Project):
    """Guard: the row of such an agent has scale 0, and "the scale is 0" would mislead."""
    directory = project.agent("mute")
    (directory / "SKILL.md").write_text("---\ndescription: x\n---\n")
    project.sync()
    with pytest.raises(Refused, match=r"file has errors.*agents/mute/SKILL.md: no command: set"):
        control.run_agent(the_agent("mute"), "ann", NOON)


def test_a_removed_agent_does_not_wait_for_the_repair_of_an_unreadable_file(project: Project):
    paths = "".join(
        f"  - {{path: {name}/agent.yaml}}\n" for name in ("gone", "kept", "left", "bad")
    )
    fleet_file = project.root / "herdctl.yaml"
    fleet_file.write_text(f"version: 1\nagents:\n{paths}")
    for name in ("gone", "kept", "left", "bad"):
        (project.root / name).mkdir()
        (project.root / name / "agent.yaml").write_text(f"name: {name}\n")
    project.sync()
    assert Agent.objects.filter(removed_at__isnull=True).count() == 4
    # Of an unreadable file it is unknown which agent it has; `left` may be in it.
    (project.root / "bad" / "agent.yaml").write_text("name: [\n")
    shutil.rmtree(project.root / "gone")
    lines = fleet_file.read_text().splitlines(keepends=True)
    fleet_file.write_text("".join(x for x in lines if "gone" not in x and "left" not in x))
    assert not project.sync(at(60)).complete
    removed = Agent.objects.filter(removed_at__isnull=False).values_list("name", flat=True)
    assert list(removed) == ["gone"]
    project.root.rename(project.root.with_name("unmounted"))
    project.sync(at(90))
    assert Agent.objects.filter(removed_at__isnull=True).count() == 3
