"""Projects of other systems become rows, follow changes of their files, and run."""

from datetime import timedelta
from pathlib import Path

import pytest

from agents_app.errors import Refused
from agents_app.management.commands import up
from agents_app.models import Agent, Schedule, Tenant
from agents_app.project import sync_project
from agents_app.schedules import edit
from agents_app.triggers import IntervalTrigger, parse_trigger
from agents_app.worker.execute import Host
from tests.agents_app.executing import do, printed
from tests.agents_app.fleet import NOON, Fleet
from tests.agents_app.formats.written import copied, write
from tests.agents_app.harness.tools import put_on_path

pytestmark = pytest.mark.django_db
S = Schedule.State


@pytest.fixture
def newsroom(tmp_path: Path) -> Path:
    return copied("newsroom", tmp_path)


def test_thirty_agents_of_nested_fleets_become_rows_once(tmp_path: Path):
    company = copied("company", tmp_path)
    assert sync_project(company, NOON).errors == ()
    assert (Agent.objects.count(), Schedule.objects.count()) == (30, 32)
    revisions = set(Agent.objects.values_list("revision", flat=True))
    sync_project(company, NOON + timedelta(minutes=1))
    assert revisions == {1} == set(Agent.objects.values_list("revision", flat=True))


def test_a_schedule_that_a_chat_starts_is_kept_and_says_unsupported_type(newsroom: Path):
    sync_project(newsroom, NOON)
    mentions = Schedule.objects.get(name="mentions")
    assert (mentions.state, mentions.next_fire_at) == (S.PAUSED, None)
    assert mentions.pause_note.startswith("unsupported_type")


def test_a_refused_edit_names_the_file_of_the_agent(newsroom: Path):
    sync_project(newsroom, NOON)
    schedule = Schedule.objects.get(name="morning")
    with pytest.raises(Refused) as refused:
        edit.cancel(schedule, "test", NOON)
    assert "agents/editor.yaml or the fleet file that names it" in str(refused.value)


def test_an_interval_counts_from_the_completion_as_in_herdctl(newsroom: Path):
    sync_project(newsroom, NOON)
    feeds = Schedule.objects.get(name="feeds")
    trigger = parse_trigger(feeds.expression)
    assert isinstance(trigger, IntervalTrigger)
    assert (feeds.interval_seconds, feeds.anchor, trigger.anchor) == (900, "", "completion")


def test_a_changed_file_changes_the_row_and_a_removed_agent_is_removed(newsroom: Path):
    sync_project(newsroom, NOON)
    editor = newsroom / "agents" / "editor.yaml"
    editor.write_text(editor.read_text().replace("0 7 * * *", "0 8 * * *"))
    fleet = newsroom / "herdctl.yaml"
    fleet.write_text(fleet.read_text().replace("  - path: ./agents/reporter.yaml\n", ""))
    sync_project(newsroom, NOON)
    assert Schedule.objects.get(name="morning").expression == "0 8 * * *"
    assert Agent.objects.get(name="reporter").removed_at == NOON


def test_a_broken_file_keeps_the_last_valid_definition(newsroom: Path):
    sync_project(newsroom, NOON)
    (newsroom / "agents" / "editor.yaml").write_text("name: editor\nmodel: [1]\n")
    sync_project(newsroom, NOON)
    editor = Agent.objects.get(name="editor")
    assert "agents/editor.yaml:2: model: must be text" in editor.definition_error
    assert (editor.schedules.filter(state=S.ACTIVE).count(), editor.removed_at) == (2, None)


def test_a_broken_herdctl_file_removes_no_agent(newsroom: Path):
    sync_project(newsroom, NOON)
    (newsroom / "herdctl.yaml").write_text("agents: [\n")
    sync_project(newsroom, NOON)
    assert not Agent.objects.filter(removed_at__isnull=False).exists()
    assert Tenant.objects.get().definition_errors[0].startswith("herdctl.yaml:")


def test_beat_gets_the_variables_that_the_files_refer_to(newsroom: Path):
    found = sync_project(newsroom, NOON)
    names = up.secret_variables(found)["DROVER_SECRET_VARIABLES"].split(",")
    assert {"NEWS_CITY", "NEWS_LANGUAGE", "NEWS_MODEL"} <= set(names)


CLAUDE = """#!/bin/sh
echo "arguments: $*"
cat
echo '{"type": "result", "subtype": "success", "result": "done"}'
"""


@pytest.mark.parametrize(
    ("name", "agent", "prompt"),
    [
        ("newsroom", "editor", "You correct the articles of the day."),
        ("helpdesk", "triage", "Read every new ticket and set a label."),
    ],
)
def test_an_agent_of_another_system_runs(
    tmp_path: Path, fleet: Fleet, host: Host, monkeypatch, name, agent, prompt
):
    programs = tmp_path / "programs" / "bin"
    write(programs, {"claude": CLAUDE})
    (programs / "claude").chmod(0o755)
    put_on_path(programs, monkeypatch)
    monkeypatch.setenv("HOME", str(tmp_path))
    root = copied(name, tmp_path)
    with (root / "config.toml").open("a") as config:
        config.write("\n[sandbox]\nmode = 'off'\n")
    assert sync_project(root, NOON).errors == ()
    row = Agent.objects.get(name=agent)
    Agent.objects.filter(pk=row.pk).update(credentials=[])
    run = do(fleet, host, Agent.objects.get(pk=row.pk), prompt="Now.")
    said = printed(run.pk)
    assert run.state == "succeeded", printed(run.pk, 2) or run.error
    assert prompt in said
    assert "arguments: -p --output-format stream-json --verbose --model claude-" in said
