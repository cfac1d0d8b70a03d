"""`hooks` and `work_source` of herdctl are those of Drover, merged by its rules and reported."""

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from agents_app.conf import CONF
from agents_app.formats import ProjectDiscovery, read_project
from agents_app.launch import event_hooks
from agents_app.maintenance.fleet_checks import WRONG, check_credentials
from agents_app.management.commands import up
from agents_app.management.commands.credential import users_of
from agents_app.models import Agent, Run, RunOutput, Schedule
from agents_app.project import sync_project
from agents_app.secrets import credential_providing
from agents_app.secrets.credentials import set_credential
from agents_app.secrets.types import parse_name
from agents_app.skills.specs import EventHookSpec
from agents_app.work_sources.claims import settings_of
from agents_app.worker.execute import Host
from tests.agents_app.executing import do
from tests.agents_app.fleet import NOON, Fleet
from tests.agents_app.formats.written import (
    NO_VARIABLES,
    agent_of,
    copied,
    errors_of,
    read,
    report_at,
    write,
)
from tests.agents_app.harness.tools import put_on_path
from tests.agents_app.receiver import receiving

FLEET = "agents: [{path: a.yaml}]\n"
TOKEN = "token-of-the-channel-4711"


def one_agent(root: Path, fields: str, fleet: str = FLEET, **env: str) -> ProjectDiscovery:
    write(root, {"herdctl.yaml": fleet, "a.yaml": f"name: a\n{fields}"})
    return read_project(root, server=env or NO_VARIABLES)


def hooks_of(root: Path, hook: str, **env: str) -> tuple[EventHookSpec, ...]:
    found = one_agent(root, f"hooks:\n  after_run:\n    - {hook}\n", **env)
    assert errors_of(found) == []
    return agent_of(found, "a").hooks.after_run


# --- hooks ----------------------------------------------------------------------------------


def test_a_shell_hook_has_its_fields_and_a_time_in_seconds(tmp_path):
    (hook,) = hooks_of(
        tmp_path,
        "{type: shell, command: ./x.sh, timeout: 1500, on_events: [failed, timeout], "
        "when: metadata.changed, continue_on_error: false}",
    )
    assert hook == EventHookSpec(
        type="shell",
        name="./x.sh",
        command='cd "$DROVER_AGENT_DIR" || exit 1\n./x.sh',
        timeout_seconds=1.5,
        on_events=("failed", "timeout"),
        when="metadata.changed",
        continue_on_error=False,
    )


def test_a_hook_of_an_agent_with_a_working_directory_starts_where_the_run_starts(tmp_path):
    fields = "working_directory: ./w\nhooks: {after_run: [{type: shell, command: make}]}\n"
    (hook,) = agent_of(one_agent(tmp_path, fields), "a").hooks.after_run
    assert hook.command == "make"


def test_a_webhook_keeps_references_in_headers_and_needs_their_credentials(tmp_path):
    found = one_agent(
        tmp_path,
        "hooks:\n  on_error:\n    - type: webhook\n      url: https://${HOST:-x.example}/hook\n"
        "      method: PUT\n      timeout: 5000\n"
        "      headers: {Authorization: 'Bearer ${CI_TOKEN}', X-Team: '${TEAM:-core}'}\n",
        CI_TOKEN=TOKEN,
    )
    agent = agent_of(found, "a")
    (hook,) = agent.hooks.on_error
    assert (hook.url, hook.method, hook.timeout_seconds) == ("https://x.example/hook", "PUT", 5)
    assert hook.headers == {"Authorization": "Bearer ${CI_TOKEN}", "X-Team": "core"}
    # The program of a run does not get them, and starts without them.
    assert (agent.hooks.credentials, agent.credentials) == (("ci_token",), ())
    line = report_at(found, "a.yaml", "hooks.on_error.1.headers")
    assert (line.line, line.advice) == (8, "manage.py credential set ci_token")
    assert TOKEN not in repr(found.agents)


@pytest.mark.parametrize(
    ("hook", "credential"),
    [
        ("{type: slack, channel_id: C1}", "slack_bot_token"),
        ("{type: slack, channel_id: C1, bot_token_env: TEAM_SLACK}", "team_slack"),
        ("{type: discord, channel_id: '123', bot_token_env: DISCORD_BOT_TOKEN}", "discord_token"),
    ],
)
def test_the_token_of_a_bot_is_a_credential(tmp_path, hook, credential):
    found = one_agent(tmp_path, f"hooks: {{after_run: [{hook}, {hook}]}}\n")
    hooks = agent_of(found, "a").hooks
    assert (len(hooks.after_run), hooks.credentials) == (2, (credential,))
    line = report_at(found, "a.yaml", "hooks.after_run.2.bot_token_env")
    assert line.advice == f"manage.py credential set {credential}"


@pytest.mark.parametrize("variable", ["teamToken", "PATH", "DROVER_X", "AWS", "A" * 65])
def test_not_every_variable_is_that_of_a_credential(variable):
    assert credential_providing(variable) is None


@pytest.mark.parametrize(
    ("hook", "field", "why"),
    [
        (
            "{type: webhook, url: 'https://x.example/', timeout: 90000}",
            "hooks.after_run.1.timeout",
            "a request has 60 s at most",
        ),
        (
            "{type: webhook, url: 'https://x.example/', headers: {Host: y.example}}",
            "hooks.after_run.1.headers.Host",
            "this header is set by Drover",
        ),
    ],
)
def test_what_a_hook_cannot_have_is_reported_and_the_hook_works(tmp_path, hook, field, why):
    found = one_agent(tmp_path, f"hooks: {{after_run: [{hook}]}}\n")
    (spec,) = agent_of(found, "a").hooks.after_run
    assert (report_at(found, "a.yaml", field).why, spec.headers) == (why, {})


@pytest.mark.parametrize(
    ("hook", "why"),
    [
        ("{type: webhook, url: 'https://me:pass@x.example/'}", "url: is not an allowed URL"),
        ("{type: webhook, url: 'ftp://x.example/'}", "url: is not an allowed URL"),
        ("{type: slack, channel_id: 'a b'}", "channel_id: must be the id of a channel"),
        ("{type: shell, command: 'true', when: 'a b'}", "when: must be a path"),
    ],
)
def test_a_hook_that_drover_cannot_run_is_left_out_and_the_others_stay(tmp_path, hook, why):
    other = "{type: shell, command: 'true', name: other}"
    found = one_agent(tmp_path, f"hooks: {{after_run: [{hook}, {other}]}}\n")
    assert errors_of(found) == []
    assert [one.name for one in agent_of(found, "a").hooks.after_run] == ["other"]
    line = report_at(found, "a.yaml", "hooks.after_run.1")
    assert line.why.startswith(f"the hook is left out: {why}")
    assert "pass@" not in line.why


def test_an_override_replaces_a_list_of_hooks_and_keeps_the_other(tmp_path):
    fleet = (
        "agents:\n  - path: a.yaml\n    overrides:\n      hooks:\n        after_run:\n"
        "          - {type: shell, command: new}\n"
    )
    fields = (
        "hooks:\n  after_run: [{type: shell, command: old}, {type: shell, command: older}]\n"
        "  on_error: [{type: shell, command: kept}]\n"
    )
    hooks = agent_of(one_agent(tmp_path, fields, fleet), "a").hooks
    assert [one.name for one in hooks.after_run] == ["new"]
    assert [one.name for one in hooks.on_error] == ["kept"]


@pytest.mark.parametrize(
    ("name", "used"), [("./out/meta.json", "out/meta.json"), ("../x.json", "metadata.json")]
)
def test_the_metadata_file_is_below_the_directory_of_the_run(tmp_path, name, used):
    found = one_agent(tmp_path, f"metadata_file: {name}\n")
    assert agent_of(found, "a").metadata_file == used
    assert len(found.report) == (used == "metadata.json")


CLAUDE = """#!/bin/sh
echo '{"changed": true}' > meta.json
echo '{"type": "result", "subtype": "success", "result": "three articles"}'
"""


def whole_log(run: Run) -> str:
    pieces = RunOutput.objects.filter(run=run).order_by("seq")
    return b"".join(bytes(piece.data) for piece in pieces).decode()


def write_hooks(root: Path, url: str) -> Path:
    """A project with an agent whose hooks are of three types."""
    headers = {"Authorization": "Bearer ${CI_TOKEN}"}
    hooks: list[dict[str, Any]] = [
        {"type": "shell", "command": "./publish.sh", "when": "metadata.changed"},
        {"type": "shell", "command": "exit 1", "on_events": ["failed"]},
        {"type": "slack", "channel_id": "C1"},
        {"type": "webhook", "url": url, "headers": headers},
    ]
    agent = {"name": "a", "metadata_file": "meta.json", "hooks": {"after_run": hooks}}
    files = {
        "herdctl.yaml": "agents: [{path: team/a.yaml}]\n",
        "config.toml": "sandbox = 'off'\n",
        "team/a.yaml": json.dumps(agent),
        "team/publish.sh": '#!/bin/sh\ngrep -c \'"event":"completed"\'\n',
    }
    write(root, files)
    (root / "team" / "publish.sh").chmod(0o755)
    return root


@pytest.mark.django_db
def test_the_hooks_of_a_project_run_after_a_run(
    tmp_path: Path, fleet: Fleet, host: Host, monkeypatch, caplog
):
    """Guard: a script beside the agent's file, a condition on metadata, and a header with a
    credential; a second credential that is not set fails its hook only."""
    programs = write(tmp_path / "programs", {"claude": CLAUDE})
    (programs / "claude").chmod(0o755)
    put_on_path(programs, monkeypatch)
    conf = replace(CONF, outgoing_hosts=frozenset({"127.0.0.1"}))
    monkeypatch.setattr(event_hooks, "CONF", conf)
    with receiving() as receiver:
        project = write_hooks(tmp_path / "project", receiver.url)
        assert sync_project(project, NOON).errors == ()
        set_credential(fleet.tenant, parse_name("ci_token"), {"value": TOKEN}, "ann", NOON)
        run = do(fleet, host, Agent.objects.get(name="a"))
    log = whole_log(run)
    assert (run.state, run.error) == ("succeeded", "")
    assert "[hooks.after_run: ./publish.sh]\n1\n[hooks.after_run: done]\n" in log
    assert "exit 1" not in log
    assert "the variable SLACK_BOT_TOKEN is not one of a credential of this agent, or the" in log
    (request,) = receiver.requests
    assert request.headers["authorization"] == f"Bearer {TOKEN}"
    assert json.loads(request.body)["metadata"] == {"changed": True}
    assert TOKEN not in log + caplog.text


@pytest.mark.django_db
def test_doctor_and_the_list_of_credentials_know_those_of_hooks(tmp_path: Path, fleet: Fleet):
    sync_project(copied("newsroom", tmp_path), NOON)
    wrong = [detail for state, detail, _ in check_credentials(NOON) if state == WRONG]
    assert wrong == ["reporter: the credential slack_bot_token is not set: its hooks fail"]
    assert users_of(fleet.tenant) == {"slack_bot_token": ["reporter"]}


# --- work sources ---------------------------------------------------------------------------


def test_a_work_source_of_an_agent_has_its_fields(tmp_path):
    fields = (
        "work_source:\n  type: github\n  repo: o/r\n  labels: {ready: go, in_progress: doing}\n"
        "  exclude_labels: [later]\n  cleanup_on_failure: false\n  auth: {token_env: BOT}\n"
    )
    source = agent_of(one_agent(tmp_path, fields), "a").work_source
    assert source is not None
    assert source.type == "github"
    assert {name: source.settings[name] for name in ("repo", "labels", "auth")} == {
        "repo": "o/r",
        "labels": {"ready": "go", "in_progress": "doing"},
        "auth": "env:BOT",
    }
    assert source.settings["exclude_labels"] == ("later",)
    assert source.settings["cleanup_on_failure"] is False


def test_a_work_source_of_a_schedule_is_its_own(tmp_path):
    fields = (
        "work_source: {type: github, repo: o/all}\nschedules:\n"
        "  mine: {type: interval, interval: 5m, work_source: {type: github, repo: o/mine}}\n"
        "  all: {type: interval, interval: 5m}\n"
    )
    agent = agent_of(one_agent(tmp_path, fields), "a")
    mine, of_agent = agent.schedules
    assert mine.work_source is not None
    assert (mine.work_source.settings["repo"], of_agent.work_source) == ("o/mine", None)
    # As the schema of herdctl says.
    assert mine.work_source.settings["auth"] == "env:GITHUB_TOKEN"


def test_defaults_and_overrides_of_a_work_source_are_merged_by_field(tmp_path):
    fleet = (
        "defaults:\n  work_source:\n    type: github\n    labels: {ready: go, in_progress: doing}\n"
        "agents:\n  - path: a.yaml\n    overrides:\n      work_source: {labels: {ready: now}}\n"
    )
    found = one_agent(tmp_path, "work_source: {type: github, repo: o/r}\n", fleet)
    source = agent_of(found, "a").work_source
    assert source is not None
    assert source.settings["labels"] == {"ready": "now", "in_progress": "doing"}
    assert found.report == ()


@pytest.mark.parametrize(
    ("source", "field", "why"),
    [
        ("{type: github}", "work_source", "names no repository"),
        ("{type: github, repo: _o/r}", "work_source", "the work source is left out: must be 'own"),
        ("{type: github, repo: o/r, auth: {token_env: a b}}", "work_source", "the work source is"),
        (
            "{type: github, repo: o/r, cleanup_in_progress: true}",
            "work_source.cleanup_in_progress",
            "Drover makes the issues",
        ),
    ],
)
def test_what_a_work_source_cannot_have_is_reported(tmp_path, source, field, why):
    found = one_agent(tmp_path, f"work_source: {source}\n")
    assert errors_of(found) == []
    assert report_at(found, "a.yaml", field).why.startswith(why)
    is_left_out = "left out" in report_at(found, "a.yaml", field).why
    assert (agent_of(found, "a").work_source is None) == is_left_out


@pytest.mark.django_db
def test_the_work_source_is_in_the_rows_and_beat_gets_the_token_of_the_env_file(
    tmp_path, monkeypatch
):
    monkeypatch.delenv("GITHUB_TOKEN", raising=False)
    project = copied("newsroom", tmp_path)
    with (project / ".env").open("a") as file:
        file.write("GITHUB_TOKEN=of-the-file\nDROVER_PORT=1\nUNUSED=x\n")
    found = sync_project(project, NOON)
    settings = settings_of(Schedule.objects.get(name="nightly"))
    assert settings is not None
    assert (settings["repo"], settings["labels"]["ready"]) == ("example/archive", "to-file")
    variables = up.secret_variables(found)
    assert variables["GITHUB_TOKEN"] == "of-the-file"
    assert "GITHUB_TOKEN" in variables["DROVER_SECRET_VARIABLES"].split(",")
    assert not {"DROVER_PORT", "UNUSED"} & variables.keys()
    assert "of-the-file" not in repr(found)


def test_a_variable_of_the_process_wins_over_the_env_file(tmp_path):
    project = copied("newsroom", tmp_path)
    write(project, {".env": "NEWS_MODEL=m\nNEWS_CITY=c\n"})
    found = read(str(project), NEWS_CITY="Halle")
    assert found.environment == {"NEWS_MODEL": "m"}
