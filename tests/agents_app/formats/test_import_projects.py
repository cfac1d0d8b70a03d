"""herdctl and Action Llama projects, written as agents of another project."""

from dataclasses import replace
from pathlib import Path

import pytest

from agents_app.errors import Refused
from agents_app.formats import read_project
from agents_app.formats.imported import Imported
from agents_app.formats.preview import preview_fires
from agents_app.formats.registry import read_source
from agents_app.formats.source_files import open_source
from agents_app.formats.write_agents import AgentWriter, WriteResult
from agents_app.skills import AgentSpec, discover_project
from tests.agents_app.formats.reading import CONTEXT, NOW, lines_of
from tests.agents_app.formats.written import PROJECTS, copied, write

HERD = {
    "herdctl.yaml": "agents:\n  - path: a.yaml\n  - path: b.yaml\n",
    "a.yaml": "name: a\nschedules: {daily: {type: cron, cron: '0 9 * * *', prompt: Go}}\n",
    "b.yaml": "name: b\nsystem_prompt: Be brief.\n",
}
LLAMA = {
    "config.toml": (
        'scale = 3\n\n[models.opus]\nprovider = "anthropic"\nmodel = "opus"\n\n'
        '[webhooks.shop]\ntype = "github"\ncredential = "x"\n'
    ),
    "scheduler.rules": "",
    "shared/notes.md": "x",
    "agents/a/SKILL.md": "Triage.\n",
    "agents/a/helper.py": "x",
    "agents/a/config.toml": 'models = ["opus"]\nschedule = "0 9 * * *"\n',
}


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Action Llama reads files of environments from the home directory."""
    monkeypatch.setenv("HOME", str(tmp_path / "home"))


def read(source: Path) -> Imported:
    return read_source(open_source(str(source), bytes), CONTEXT)[1]


def import_project(source: Path, into: Path, *, enable: bool = False) -> WriteResult:
    opened = open_source(str(source), bytes)
    agents = read_source(opened, CONTEXT)[1].agents
    writer = AgentWriter(into, opened.id, opened.short_title, enable=enable)
    return writer.write(agents, dry_run=False)


def states(result: WriteResult) -> dict[str, str]:
    return {written.name: written.state for written in result.written}


def comparable(agent: AgentSpec, scale: int) -> AgentSpec:
    """Without what an import changes: the place, the scale, and the zone, which is written out."""
    schedules = tuple(
        one if one.expression.startswith("@chat") else replace(one, timezone=CONTEXT.host_zone)
        for one in sorted(agent.schedules, key=lambda each: each.name)
    )
    return replace(
        agent,
        source_path=Path(),
        instructions=agent.instructions.rstrip("\n"),
        scale=scale,
        schedules=schedules,
    )


# --- what arrives ---------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("project", "least"), [("newsroom", 3), ("company", 30), ("helpdesk", 4), ("studio", 30)]
)
def test_the_imported_agents_are_those_of_the_project_disabled(tmp_path: Path, project, least):
    before = read_project(PROJECTS / project).agents
    result = import_project(PROJECTS / project, tmp_path / "fleet", enable=False)
    after = discover_project(tmp_path / "fleet")
    assert (result.errors, after.errors) == ((), ())
    assert len(after.agents) == len(before) >= least
    for old, new in zip(before, after.agents, strict=True):
        assert comparable(new, 0) == comparable(old, 0)
        assert new.scale == 0


@pytest.mark.parametrize("project", ["company", "helpdesk"])
def test_enabled_agents_have_the_scale_of_the_project(tmp_path: Path, project):
    before = {agent.name: agent.scale for agent in read_project(PROJECTS / project).agents}
    import_project(PROJECTS / project, tmp_path, enable=True)
    after = {agent.name: agent.scale for agent in discover_project(tmp_path).agents}
    assert after == before
    assert len(set(before.values())) > 1


def test_an_agent_that_was_disabled_stays_disabled_and_says_so(tmp_path: Path):
    result = import_project(PROJECTS / "helpdesk", tmp_path, enable=True)
    assert {one.name: one.enabled for one in result.written}["oracle"] is False
    assert "as in the old system" in (tmp_path / "agents/oracle/config.toml").read_text()


def test_both_sides_have_the_same_next_fires(tmp_path: Path):
    schedules = [one for agent in read(PROJECTS / "company").agents for one in agent.schedules]
    assert len(schedules) >= 30
    for schedule in schedules:
        fires = preview_fires(schedule, NOW, CONTEXT.host_zone)
        assert fires.is_same, schedule
        is_silent = schedule.expression == "@webhook" or schedule.settings.get("enabled") is False
        assert len(fires.new) == (0 if is_silent else 3)


# --- again ----------------------------------------------------------------------------------


@pytest.mark.parametrize("project", ["company", "studio"])
def test_a_second_import_changes_nothing(tmp_path: Path, project):
    assert set(states(import_project(PROJECTS / project, tmp_path)).values()) == {"created"}
    before = {path: path.stat().st_mtime_ns for path in tmp_path.rglob("*")}
    result = import_project(PROJECTS / project, tmp_path)
    assert set(states(result).values()) == {"unchanged"}
    assert {path: path.stat().st_mtime_ns for path in tmp_path.rglob("*")} == before


def test_a_changed_project_updates_what_was_not_edited(tmp_path: Path):
    source, fleet = write(tmp_path / "herd", HERD), tmp_path / "fleet"
    import_project(source, fleet)
    edited = fleet / "agents/b/SKILL.md"
    edited.write_text(edited.read_text() + "Mine.\n")
    write(source, {"a.yaml": HERD["a.yaml"].replace("0 9", "30 10")})
    write(source, {"b.yaml": "name: b\nsystem_prompt: Be very brief.\n"})
    result = import_project(source, fleet)
    assert states(result) == {"a": "updated", "b": "edited"}
    assert [line.file for line in result.report] == ["agents/b/SKILL.md"]
    specs = {agent.name: agent for agent in discover_project(fleet).agents}
    assert specs["a"].schedules[0].expression == "30 10 * * *"
    assert specs["b"].instructions == "Be brief.\nMine.\n"


def test_the_file_and_the_directory_of_herdctl_are_the_same_source(tmp_path: Path):
    source, fleet = write(tmp_path / "herd", HERD), tmp_path / "fleet"
    import_project(source, fleet)
    assert set(states(import_project(source / "herdctl.yaml", fleet)).values()) == {"unchanged"}


# --- what does not arrive -------------------------------------------------------------------


def test_settings_of_the_project_and_other_files_are_reported(tmp_path: Path):
    report = read(write(tmp_path / "llama", LLAMA)).report
    assert lines_of(report, "scale") == [1]
    assert lines_of(report, "webhooks") == [7]
    files = {line.file for line in report}
    assert {"shared", "agents/a/helper.py", "scheduler.rules"} <= files
    assert not {"agents/a/SKILL.md", "agents/a/config.toml"} & files


def test_what_drover_does_not_honour_is_reported_with_its_line(tmp_path: Path):
    text = HERD["b.yaml"] + "session:\n  timeout: 8h\n"
    found = read(write(tmp_path, HERD | {"b.yaml": text, "config.toml": "scale = 2\n"}))
    assert (lines_of(found.report, "session"), lines_of(found.report, "scale")) == ([3], [1])


def test_a_broken_agent_is_an_error_with_its_line_and_the_others_arrive(tmp_path: Path):
    source = write(tmp_path / "herd", HERD | {"b.yaml": "name: b\nmax_turns: many\n"})
    found = read(source)
    assert [(error.file, error.line, error.field) for error in found.errors] == [
        ("b.yaml", 2, "max_turns")
    ]
    assert [agent.name for agent in found.agents] == ["a"]


def test_the_value_of_a_variable_that_may_be_a_secret_is_not_copied(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setenv("SHOP_TOKEN", "canary-4711")
    monkeypatch.setenv("SHOP_NAME", "Corner shop")
    agent = (
        "name: a\nsystem_prompt: Ask ${SHOP_NAME} with ${SHOP_TOKEN}.\ndocker:\n  enabled: true\n"
    )
    config = (
        "defaults:\n  docker:\n    env: {T: '${SHOP_TOKEN}', API_KEY: canary-4712, N: x}\n"
        "agents:\n  - path: a.yaml\n"
    )
    source = write(tmp_path / "herd", {"herdctl.yaml": config, "a.yaml": agent})
    found = read(source)
    assert "canary" not in repr(found)
    assert found.agents[0].fields["env"] == {"N": "x"}
    assert found.agents[0].body == "Ask Corner shop with ${SHOP_TOKEN}."
    places = [(line.file, line.line) for line in found.report if line.field == "SHOP_TOKEN"]
    assert sorted(places) == [("a.yaml", 2), ("herdctl.yaml", 3)]
    assert {line.field for line in found.report} >= {"env.T", "env.API_KEY"}


# --- where agents can be written ------------------------------------------------------------


def test_agents_are_not_written_where_herdctl_says_which_agents_there_are(tmp_path: Path):
    herd = copied("newsroom", tmp_path)
    before = sorted(herd.rglob("*"))
    with pytest.raises(Refused, match=r"herdctl\.yaml says which agents"):
        import_project(write(tmp_path / "herd", HERD), herd)
    assert sorted(herd.rglob("*")) == before
