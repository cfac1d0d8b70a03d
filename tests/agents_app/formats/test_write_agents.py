"""Writing imported agents: again, after changes of the source, and beside files of people."""

from pathlib import Path

import pytest

from agents_app.errors import Refused
from agents_app.formats.crontab import read_crontab
from agents_app.formats.imported import ImportedAgent, ImportedSchedule
from agents_app.formats.manifest import FILE
from agents_app.formats.write_agents import AgentWriter, WriteResult
from agents_app.skills import discover_project
from tests.agents_app.formats.reading import CONTEXT, SOURCES

BACKUP = "0 1 * * * /bin/backup\n"


def write(
    project: Path, text: str, *, enable: bool = False, dry_run: bool = False, source: str = "/tab"
) -> WriteResult:
    agents = read_crontab("tab", text, CONTEXT, system=False).agents
    return AgentWriter(project, source, source, enable=enable).write(agents, dry_run=dry_run)


def states(result: WriteResult) -> dict[str, str]:
    return {written.name: written.state for written in result.written}


def snapshot(project: Path) -> dict[str, tuple[str, int]]:
    return {
        path.relative_to(project).as_posix(): (path.read_text(), path.stat().st_mtime_ns)
        for path in project.rglob("*")
        if path.is_file()
    }


def config(project: Path, name: str = "backup") -> Path:
    return project / "agents" / name / "config.toml"


def test_agents_are_written_disabled_and_are_valid(tmp_path):
    write(tmp_path, (SOURCES / "large.crontab").read_text())
    found = discover_project(tmp_path)
    assert found.errors == ()
    assert (len(found.agents), {agent.scale for agent in found.agents}) == (32, {0})
    text = config(tmp_path, "backup-database").read_text()
    assert text.startswith("# Imported from /tab. A later import updates this file")
    assert "set scale = 1 to enable" in text


def test_enabled_agents_have_scale_one(tmp_path):
    write(tmp_path, BACKUP, enable=True)
    assert [agent.scale for agent in discover_project(tmp_path).agents] == [1]


def test_schedules_variables_and_shell_arrive(tmp_path):
    write(tmp_path, 'SHELL=/bin/bash\nA="x \\"y\\" \u00e9"\nCRON_TZ=UTC\n5 1 * * 1 echo "hi"\n')
    (agent,) = discover_project(tmp_path).agents
    (schedule,) = agent.schedules
    assert (schedule.name, schedule.expression) == ("crontab", "5 1 * * 1")
    assert (schedule.timezone, schedule.gap, schedule.catch_up) == ("UTC", "next_valid", "skip")
    assert agent.command == ("/bin/bash", "./script.sh")
    assert agent.env == {"A": 'x \\"y\\" \u00e9'}
    assert agent.instructions.strip() == 'echo "hi"'
    assert agent.timeout_seconds == 86_400


def test_a_second_import_changes_nothing(tmp_path):
    text = (SOURCES / "large.crontab").read_text()
    assert set(states(write(tmp_path, text)).values()) == {"created"}
    before = snapshot(tmp_path)
    result = write(tmp_path, text)
    assert set(states(result).values()) == {"unchanged"}
    assert snapshot(tmp_path) == before
    assert (result.report, result.errors) == ((), ())


def test_a_dry_run_writes_nothing_and_says_the_same(tmp_path):
    result = write(tmp_path, BACKUP, dry_run=True)
    assert list(tmp_path.iterdir()) == []
    assert states(result) == states(write(tmp_path, BACKUP))


def test_a_changed_source_updates_what_was_not_edited(tmp_path):
    write(tmp_path, BACKUP + "0 2 * * * /bin/report\n")
    result = write(tmp_path, "# new\n0 4 * * * /bin/backup --all\n0 2 * * * /bin/report\n")
    assert states(result) == {"backup": "updated", "report": "unchanged"}
    agent = discover_project(tmp_path).agents[0]
    assert agent.schedules[0].expression == "0 4 * * *"
    assert agent.instructions.strip() == "/bin/backup --all"


def test_an_edited_file_is_left_and_reported_when_the_source_changes(tmp_path):
    write(tmp_path, BACKUP)
    edited = config(tmp_path).read_text().replace("scale = 0", "scale = 1")
    config(tmp_path).write_text(edited)
    result = write(tmp_path, BACKUP)
    assert (states(result), result.report) == ({"backup": "edited"}, ())
    result = write(tmp_path, "0 4 * * * /bin/backup --all\n")
    assert config(tmp_path).read_text() == edited
    assert [line.file for line in result.report] == ["agents/backup/config.toml"]
    # The other file of the agent was not edited.
    assert "--all" in (tmp_path / "agents/backup/SKILL.md").read_text()


def test_a_deleted_agent_is_not_written_again(tmp_path):
    write(tmp_path, BACKUP)
    config(tmp_path).unlink()
    (tmp_path / "agents/backup/SKILL.md").unlink()
    config(tmp_path).parent.rmdir()
    assert states(write(tmp_path, BACKUP)) == {"backup": "deleted"}
    result = write(tmp_path, "0 4 * * * /bin/backup -x\n")
    assert not config(tmp_path).parent.exists()
    assert [line.why[:11] for line in result.report] == ["was deleted"] * 2


def test_an_enabled_agent_stays_enabled(tmp_path):
    write(tmp_path, BACKUP)
    write(tmp_path, BACKUP, enable=True)
    assert discover_project(tmp_path).agents[0].scale == 1
    # An import without --enable disables nothing, and new agents are disabled.
    write(tmp_path, BACKUP + "0 2 * * * /bin/report\n")
    scales = {agent.name: agent.scale for agent in discover_project(tmp_path).agents}
    assert scales == {"backup": 1, "report": 0}


def test_an_agent_of_a_person_is_never_changed(tmp_path):
    own = tmp_path / "agents/backup/SKILL.md"
    own.parent.mkdir(parents=True)
    own.write_text("mine")
    elsewhere = tmp_path / "report/SKILL.md"
    elsewhere.parent.mkdir()
    elsewhere.write_text("---\nharness: shell\n---\ntrue\n")
    text = BACKUP + "0 2 * * * /bin/report\n"
    assert states(write(tmp_path, text)) == {"backup-2": "created", "report-2": "created"}
    assert own.read_text() == "mine"
    assert states(write(tmp_path, text)) == {"backup-2": "unchanged", "report-2": "unchanged"}


def test_sources_do_not_touch_the_agents_of_each_other(tmp_path):
    write(tmp_path, BACKUP, source="/one")
    assert states(write(tmp_path, "0 5 * * * /bin/backup\n", source="/two")) == {
        "backup-2": "created"
    }
    assert states(write(tmp_path, BACKUP, source="/one")) == {"backup": "unchanged"}


def test_an_entry_that_is_gone_is_reported_and_its_agent_left(tmp_path):
    write(tmp_path, BACKUP + "0 2 * * * /bin/report\n")
    result = write(tmp_path, BACKUP)
    assert [line.file for line in result.report] == ["agents/report"]
    assert config(tmp_path, "report").exists()


def test_files_of_an_import_that_was_killed_are_taken_over(tmp_path):
    """The manifest is written last."""
    write(tmp_path, BACKUP)
    (tmp_path / "agents" / FILE).unlink()
    config(tmp_path).unlink()
    assert states(write(tmp_path, BACKUP)) == {"backup": "created"}
    assert states(write(tmp_path, BACKUP)) == {"backup": "unchanged"}


@pytest.mark.parametrize(
    "text",
    [
        "not json",
        "[]",
        "{}",
        '{"sources": 1}',
        '{"sources": {"/tab": {"backup": {"agent": "../../x", "enabled": true, "files": {}}}}}',
    ],
)
def test_a_damaged_manifest_is_refused(tmp_path, text):
    (tmp_path / "agents").mkdir()
    (tmp_path / "agents" / FILE).write_text(text)
    with pytest.raises(Refused, match=r"\.imported\.json is damaged"):
        write(tmp_path, BACKUP)


def test_links_are_not_followed(tmp_path):
    outside, project = tmp_path / "outside", tmp_path / "project"
    outside.mkdir()
    project.mkdir()
    (project / "agents").symlink_to(outside)
    with pytest.raises(Refused, match="is a symlink"):
        write(project, BACKUP)
    (project / "agents").unlink()
    (project / "agents").mkdir()
    (project / "agents/backup").symlink_to(outside)
    assert states(write(project, BACKUP)) == {"backup-2": "created"}
    assert list(outside.iterdir()) == []


def test_an_agent_that_drover_refuses_is_an_error_and_not_written(tmp_path):
    schedule = ImportedSchedule(name="x", old="x", expression="every blue moon")
    common = {"file": "f", "line": 7, "description": "d"}
    agents = [
        ImportedAgent(key="a", name="a", body="true", schedules=(schedule,), **common),
        ImportedAgent(key="b", name="b", body="\ud800", **common),
        ImportedAgent(key="c", name="c", body="true", **common),
    ]
    result = AgentWriter(tmp_path, "s", "s", enable=False).write(agents, dry_run=False)
    assert states(result) == {"a": "refused", "b": "refused", "c": "created"}
    assert [(error.file, error.line) for error in result.errors] == [("f", 7), ("f", 7)]
    assert [agent.name for agent in discover_project(tmp_path).agents] == ["c"]


def test_texts_cannot_break_out_of_the_files(tmp_path):
    hostile = 'x"\n---\nharness: claude-code\n\x7f\u2028'
    agent = ImportedAgent(
        key="a",
        name="a",
        file="f",
        line=1,
        description=hostile,
        body="---\nscale: 5\n---\ntrue",
        fields={"env": {"A": hostile}},
    )
    AgentWriter(tmp_path, "s", "a\nscale = 9\n#", enable=False).write([agent], dry_run=False)
    (read,) = discover_project(tmp_path).agents
    assert (read.harness, read.scale, read.env) == ("shell", 0, {"A": hostile})
    assert read.instructions == "---\nscale: 5\n---\ntrue\n"
