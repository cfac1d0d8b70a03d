"""Projects of Action Llama are projects of Drover: models, layers, aliases, and a report."""

from pathlib import Path

import pytest

from agents_app.formats import ProjectDiscovery, read_project
from tests.agents_app.formats.written import (
    NO_VARIABLES,
    agent_of,
    errors_of,
    read,
    report_at,
    write,
)


@pytest.fixture
def helpdesk(tmp_path: Path) -> ProjectDiscovery:
    """With the file of its environment in a home directory."""
    office = "scale = 9\n\n[gateway]\nport = 8181\n\n[cloud]\nprovider = 'cloud-run'\n"
    write(tmp_path, {".action-llama/environments/office.toml": office})
    return read("helpdesk", HOME=str(tmp_path))


def test_a_small_project_is_read_without_a_change(helpdesk):
    assert errors_of(helpdesk) == []
    assert helpdesk.format == "action-llama"
    assert [agent.name for agent in helpdesk.agents] == ["coder", "oracle", "remote", "triage"]


def test_the_first_model_chooses_harness_and_model(helpdesk):
    triage, coder = agent_of(helpdesk, "triage"), agent_of(helpdesk, "coder")
    assert (triage.harness, triage.model) == ("claude-code", "claude-sonnet-4-20250514")
    assert triage.command[-2:] == ("--model", "claude-sonnet-4-20250514")
    assert (coder.harness, coder.model, coder.timeout_seconds) == ("codex", "gpt-5-codex", 7200)


def test_fallback_models_are_reported_and_kept_with_the_agent(helpdesk):
    line = report_at(helpdesk, "agents/triage/config.toml", "models")
    assert "fallback models are not honoured yet" in line.why
    kept = agent_of(helpdesk, "triage").metadata["action-llama"]["models"]
    named = [(model["name"], model["provider"]) for model in kept]
    assert named == [("sonnet", "anthropic"), ("gpt", "openai")]
    assert "action-llama" not in agent_of(helpdesk, "coder").metadata


def test_the_fields_of_an_agent_mean_the_same(helpdesk):
    triage = agent_of(helpdesk, "triage")
    assert triage.credentials == ("github_token", "git_ssh:work")
    assert (triage.work_queue_size, triage.max_reruns, triage.max_call_depth) == (12, 5, 2)
    assert (triage.scale, triage.timeout_seconds, triage.runtime.memory) == (2, 1200, "2g")
    assert triage.webhooks[0].filters == {"events": ("issues",), "actions": ("opened",)}
    assert triage.metadata["source"] == "https://github.com/example/agents#triage"
    assert agent_of(helpdesk, "coder").scale == 1


def test_a_model_without_a_harness_disables_the_agent_and_does_not_refuse_it(helpdesk):
    oracle = agent_of(helpdesk, "oracle")
    assert (oracle.scale, len(oracle.schedules)) == (0, 1)
    assert "'google'" in report_at(helpdesk, "agents/oracle/SKILL.md", "models").why


def test_an_agent_of_another_machine_does_not_run_on_this_one(helpdesk):
    remote = agent_of(helpdesk, "remote")
    assert (remote.scale, remote.runtime.type) == (0, "process")
    assert report_at(helpdesk, "agents/remote/config.toml", "runtime.type").line == 6


def test_three_files_of_settings_are_layers(helpdesk):
    project = helpdesk.project
    assert (project.scale, project.gateway.port) == (9, 8181)
    assert project.gateway.url == "https://helpdesk.example.com"
    assert (project.max_reruns, project.work_queue_size, project.max_call_depth) == (5, 40, 2)
    assert (project.history_retention_days, project.resource_lock_timeout_seconds) == (30, 900)
    assert project.webhooks[0].credential == "github_webhook_secret:shop"


def test_the_environment_variable_chooses_the_environment(tmp_path):
    write(tmp_path, {".action-llama/environments/home.toml": "scale = 3\n"})
    found = read("helpdesk", HOME=str(tmp_path), AL_ENV="home")
    assert found.project.scale == 3
    assert [path.name for path in found.files] == ["home.toml"]


def test_a_missing_environment_is_reported_and_the_project_works(tmp_path):
    found = read("helpdesk", HOME=str(tmp_path))
    assert (errors_of(found), found.project.scale, len(found.agents)) == ([], 6, 4)
    line = report_at(found, "~/.action-llama/environments/office.toml", "")
    assert line.why == "the file of the environment does not exist"


def test_every_field_without_a_counterpart_is_reported_with_its_line(helpdesk):
    config, triage = "config.toml", "agents/triage/config.toml"
    remote = "agents/remote/config.toml"
    assert sorted((line.file, line.line, line.field) for line in helpdesk.report) == [
        (".env.toml", 6, "server"),
        ("agents/oracle/SKILL.md", 3, "models"),
        (remote, 6, "runtime.type"),
        (remote, 7, "runtime.host"),
        (remote, 8, "runtime.port"),
        (remote, 9, "runtime.user"),
        (remote, 10, "runtime.key_path"),
        (triage, 2, "models"),
        (triage, 6, "waitTimeout"),
        (triage, 22, "runtime.groups"),
        (config, 6, "defaultWaitTimeout"),
        (config, 14, "models.sonnet.thinkingLevel"),
        (config, 38, "telemetry"),
        ("~/.action-llama/environments/office.toml", 6, "cloud"),
    ]


def test_a_project_with_thirty_agents_is_read_without_a_report():
    found = read("studio")
    assert (errors_of(found), found.report, found.format) == ([], (), "action-llama")
    assert len(found.agents) == 30
    harnesses = [agent.harness for agent in found.agents]
    assert (harnesses.count("codex"), harnesses.count("claude-code")) == (10, 20)
    assert all(len(agent.schedules) == 1 for agent in found.agents)


# --- single fields --------------------------------------------------------------------------

MODELS = "[models.m]\nprovider = 'anthropic'\nmodel = 'claude-x'\n"


def one_agent(tmp_path: Path, config: str, project: str = MODELS) -> ProjectDiscovery:
    skill = "---\ndescription: x\n---\nWork.\n"
    files = {"config.toml": project, "agents/a/SKILL.md": skill, "agents/a/config.toml": config}
    return read_project(write(tmp_path, files), server=NO_VARIABLES)


@pytest.mark.parametrize(
    ("config", "error"),
    [
        ("models = ['m']\nshedule = '5m'", "agents/a/config.toml:2: shedule: unknown field; did "),
        ("models = ['n']", "agents/a/config.toml:1: models: config.toml has no [models.n]"),
        ("models = ['mm']", "agents/a/config.toml:1: models: config.toml has no [models.mm]; did"),
        ("models = [4]", "agents/a/config.toml:1: models: must be a list of names of models"),
        ("models = ['m']\n[runtime]\nhots = 'x'", "agents/a/config.toml:3: runtime.hots: unknown"),
        ("models = []", "agents/a/SKILL.md: no command: "),
    ],
)
def test_a_field_that_no_format_knows_is_refused(tmp_path, config, error):
    found = one_agent(tmp_path, config)
    assert found.agents == ()
    assert errors_of(found)[0].startswith(error)


@pytest.mark.parametrize(
    ("project", "error"),
    [
        (MODELS + "modle = 'x'\n", "config.toml:4: models.m.modle: unknown field; did you mean"),
        ("models = 3\n", "config.toml:1: models: must be a table of models, not 3"),
        ("[models.m]\nmodel = 'x'\n", "config.toml:1: models.m.provider: must be text"),
        ("maxRerunz = 3\n", "config.toml:1: maxRerunz: unknown field; did you mean 'max_reruns'?"),
    ],
)
def test_wrong_settings_are_errors_of_the_project(tmp_path, project, error):
    found = one_agent(tmp_path, "command = 'true'", project)
    assert found.config_is_broken
    assert errors_of(found)[0].startswith(error)


def test_a_broken_layer_is_an_error_of_the_project(tmp_path):
    write(tmp_path, {".env.toml": "environment = \n"})
    found = one_agent(tmp_path, "models = ['m']")
    assert found.config_is_broken
    assert errors_of(found)[0].startswith(".env.toml:1:")


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        (b"\x89PNG\r\n\x00", ":1: is not UTF-8"),
        (b"a = 'x\x00'\n", ":1"),
        (b"# " + b"x" * 10_000_000, ": has 10000002 bytes; at most 65536 (64 KiB) are read"),
        (b"a = " + b"[" * 20_000 + b"]" * 20_000, ""),
        (b"models = [1]\n", ":1: models: must be a table of models, not a list"),
        (b"[models]\nm = 3\n", ":2: models.m: must be a table, not 3"),
    ],
)
@pytest.mark.parametrize(
    "layer", [".env.toml", "config.toml", "~/.action-llama/environments/e.toml"]
)
def test_any_layer_may_be_broken_and_the_agents_stay(tmp_path, layer, content, reason):
    """Guard: the last valid settings are used, and the error names the file that is broken."""
    home, project = tmp_path / "home", tmp_path / "project"
    files: dict[str, str | bytes] = {"config.toml": "", ".env.toml": "environment = 'e'\n"}
    if layer.startswith("~"):
        write(home, {layer[2:]: content})
    else:
        files[layer] = content
    skill = "---\ndescription: x\ncommand: 'true'\n---\nWork.\n"
    write(project, {**files, "agents/a/SKILL.md": skill})
    found = read_project(project, server={"HOME": str(home)})
    assert ([agent.name for agent in found.agents], found.config_is_broken) == (["a"], True)
    assert errors_of(found)[0].startswith(f"{layer}{reason}")


def test_a_layer_that_is_a_symlink_out_of_the_project_is_refused(tmp_path):
    outside = write(tmp_path / "outside", {"x.toml": "scale = 9\n"})
    project = write(tmp_path / "project", {"config.toml": MODELS})
    (project / ".env.toml").symlink_to(outside / "x.toml")
    found = read_project(project, server=NO_VARIABLES)
    assert errors_of(found) == [
        ".env.toml: is a symlink out of the project; copy the file instead",
    ]
    assert found.project.scale is None


@pytest.mark.parametrize("name", ["'../x'", "''", "3", "'a/b'"])
def test_the_name_of_an_environment_is_not_a_path(tmp_path, name):
    write(tmp_path, {".env.toml": f"environment = {name}\n"})
    found = one_agent(tmp_path, "models = ['m']")
    assert found.config_is_broken == (name != "''")
    assert found.files == ()


def test_a_harness_of_the_agent_keeps_the_model(tmp_path):
    found = one_agent(tmp_path, "models = ['m']\nharness = 'codex'")
    assert (agent_of(found, "a").harness, agent_of(found, "a").model) == ("codex", "claude-x")


def test_a_command_of_the_agent_wins_over_models(tmp_path):
    found = one_agent(tmp_path, "models = ['m']\ncommand = 'true'")
    assert agent_of(found, "a").command == ("true",)
    assert report_at(found, "agents/a/config.toml", "models").why == ("`command` decides what runs")


def test_a_provider_with_the_name_of_a_harness_chooses_it(tmp_path):
    models = "[models.m]\nprovider = 'codex'\nmodel = 'gpt-x'\n"
    assert agent_of(one_agent(tmp_path, "models = ['m']", models), "a").harness == "codex"


def test_a_project_without_foreign_fields_has_the_format_of_drover(tmp_path):
    assert one_agent(tmp_path, "command = 'true'", "scale = 2\n").format == "drover"
