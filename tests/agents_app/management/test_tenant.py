"""`tenant` and `token`: made, listed, switched off, deleted; a secret is shown once."""

import io
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from agents_app.accounts.tokens import create_token, find_token
from agents_app.conf import CONF
from agents_app.maintenance.tenant_checks import check_tenants
from agents_app.models import Agent, ApiToken, RunEvent, Tenant, WorkItem
from tests.agents_app.fleet import NOON, Fleet
from tests.agents_app.management.calling import call
from tests.agents_app.management.conftest import write_agent


def test_a_tenant_is_made_with_a_token_to_keep(durable_fleet: Fleet):
    said = call("tenant", "create", "acme")
    assert said.out.startswith("tenant acme created\n")
    secret = said.out.split()[-1]
    token = find_token(secret, NOON)
    assert token is not None and (token.tenant.name, token.scope) == ("acme", "admin")
    assert said.err == "store the tokens now: they cannot be shown again\n"
    assert call("tenant", "create", "acme").err == "a tenant 'acme' exists already\n"


def test_tenants_are_listed_with_their_state(durable_fleet: Fleet):
    durable_fleet.agent()
    call("tenant", "create", "acme")
    call("tenant", "disable", "acme")
    listed = call("tenant", "list", "--json").json
    assert [(t["name"], t["state"], t["agents"]) for t in listed] == [
        ("acme", "disabled", 0),
        ("default", "enabled", 1),
    ]
    assert "disabled" in call("tenant", "list").out


def test_a_tenant_is_disabled_and_enabled(durable_fleet: Fleet):
    durable_fleet.agent()
    assert call("tenant", "disable", "default").out == "default disabled\n"
    assert call("tenant", "disable", "default").out == "default was already disabled\n"
    assert "the tenant is disabled" in call("run", "reporter").err
    assert call("tenant", "enable", "default", "--json").json == {
        "tenant": "default",
        "state": "enabled",
        "changed": True,
    }


def test_rotating_shows_the_new_tokens_once(durable_fleet: Fleet):
    old = create_token(durable_fleet.tenant, "ci", "operate", "ann", NOON).secret
    (made,) = call("tenant", "rotate", "default", "--json").json["tokens"]
    assert (made["name"], made["scope"]) == ("ci", "operate")
    assert find_token(old, NOON) is None
    assert find_token(made["token"], NOON) is not None


def test_deleting_must_be_meant(durable_fleet: Fleet):
    call("tenant", "create", "acme")
    said = call("tenant", "delete", "acme")
    assert said.code == 1 and "add --yes" in said.err
    assert call("tenant", "delete", "acme", "--yes").out == "acme deleted\n"
    assert not Tenant.objects.filter(name="acme").exists()
    assert call("tenant", "delete", "acme", "--yes").code == 1
    assert "owns the project" in call("tenant", "delete", "default", "--yes").err


def test_a_tenant_that_does_not_exist_is_guessed(durable_fleet: Fleet):
    call("tenant", "create", "acme")
    assert call("tenant", "disable", "acmee").err.endswith("did you mean 'acme'?\n")


# --- projects -------------------------------------------------------------------------------

SKILL = "---\ndescription: Says hello\ncommand: [echo, hello]\n---\nSay hello.\n"


@pytest.fixture
def fleet_of_acme(tmp_path: Path) -> Path:
    write_agent(tmp_path / "acme", "greeter", SKILL)
    return tmp_path / "acme"


def test_the_agents_of_a_new_tenant_are_read_at_once(durable_fleet: Fleet, fleet_of_acme: Path):
    said = call("tenant", "create", "acme", "--project", str(fleet_of_acme))
    assert said.code == 0
    assert f"{fleet_of_acme}: 1 agent, 0 errors" in said.err
    assert find_token(said.out.split()[-1], NOON) is not None
    (agent,) = Tenant.objects.get(name="acme").agents.all()
    assert agent.directory == str(fleet_of_acme / "agents" / "greeter")
    listed = {each["name"]: each["project"] for each in call("tenant", "list", "--json").json}
    assert listed == {"acme": str(fleet_of_acme), "default": str(CONF.project)}
    assert str(fleet_of_acme) in call("tenant", "list").out


def test_a_project_that_cannot_be_used_creates_no_tenant(durable_fleet: Fleet, tmp_path: Path):
    said = call("tenant", "create", "acme", "--project", str(tmp_path / "gone"))
    assert said.code == 1
    assert said.err == f"the project directory {tmp_path / 'gone'} does not exist: create it\n"
    assert not Tenant.objects.filter(name="acme").exists()


def test_the_project_is_shown_and_changed(
    durable_fleet: Fleet, fleet_of_acme: Path, tmp_path: Path
):
    call("tenant", "create", "acme")
    assert call("tenant", "project", "acme").out == "acme: no project directory\n"
    said = call("tenant", "project", "acme", str(fleet_of_acme), "--json")
    assert said.json == {"tenant": "acme", "project": str(fleet_of_acme)}
    assert Tenant.objects.get(name="acme").agents.get().name == "greeter"
    assert call("tenant", "project", "acme").out == f"acme: {fleet_of_acme}\n"
    assert call("tenant", "project", "acme", "").code == 1
    assert "DROVER_PROJECT" in call("tenant", "project", "default", str(tmp_path)).err


def test_discover_reads_the_project_of_a_tenant(durable_fleet: Fleet, fleet_of_acme: Path):
    call("tenant", "create", "acme")
    assert "acme has no project: set one with" in call("discover", "--tenant", "acme").err
    call("tenant", "project", "acme", str(fleet_of_acme))
    write_agent(fleet_of_acme, "second", SKILL)
    found = call("discover", "--tenant", "acme", "--json").json
    assert (found["tenant"], found["project"]) == ("acme", str(fleet_of_acme))
    assert [agent["name"] for agent in found["agents"]] == ["greeter", "second"]
    assert Agent.objects.count() == 1
    assert call("discover", "--tenant", "acme", "--sync").code == 0
    assert Agent.objects.filter(tenant__name="acme").count() == 2


def test_rules_of_a_tenant_are_tested_against_its_own_agents(
    durable_fleet: Fleet, fleet_of_acme: Path
):
    durable_fleet.agent("forge")
    call("tenant", "create", "acme", "--project", str(fleet_of_acme))
    (fleet_of_acme / "scheduler.rules").write_text("[a] every 1m => summon forge\n")
    tested = call("rules", "test", "--tenant", "acme", "--json").json
    assert tested["file"] == str(fleet_of_acme / "scheduler.rules")
    assert tested["rules"][0]["warnings"] == ["there is no agent forge"]
    assert call("rules", "test", "--json").json["rules"] == []


def test_doctor_checks_the_projects_of_all_tenants(durable_fleet: Fleet, fleet_of_acme: Path):
    write_agent(fleet_of_acme, "broken", "---\nscal: 2\n---\nx\n")
    (fleet_of_acme / "scheduler.rules").write_text("every 5x => pause greeter\n")
    call("tenant", "create", "acme", "--project", str(fleet_of_acme))
    call("tenant", "create", "empty")
    found = [(verdict, detail) for verdict, detail, _ in check_tenants(NOON)]
    assert [verdict for verdict, _ in found] == ["wrong", "wrong", "ok", "ok"]
    assert found[0][1].startswith("acme: agents/broken/SKILL.md:2")
    assert 'acme: line 1, column 7: "5x" is not a valid duration' in found[1][1]
    assert found[2:] == [("ok", "empty: no project directory"), ("ok", "2 beside default")]
    shutil.rmtree(fleet_of_acme)
    assert "does not exist: create it" in next(iter(check_tenants(NOON)))[1]


# --- tokens ---------------------------------------------------------------------------------


def test_a_token_is_printed_alone_so_that_a_script_can_keep_it(durable_fleet: Fleet):
    said = call("token", "create", "ci", "--scope", "operate")
    token = find_token(said.out.strip(), NOON)
    assert token is not None and (token.name, token.scope) == ("ci", "operate")
    assert "cannot be shown again" in said.err
    assert RunEvent.objects.get().detail.endswith(": ci (operate)")


def test_a_token_is_created_with_an_expiry_and_addresses(durable_fleet: Fleet):
    limits = ("--expires", "in 90 days", "--address", "10.0.0.0/8", "--address", "203.0.113.7")
    made = call("token", "create", "ci", "--scope", "read", *limits, "--json").json
    assert made["addresses"] == ["10.0.0.0/8", "203.0.113.7/32"]
    token = ApiToken.objects.get()
    assert token.expires_at is not None
    assert (token.expires_at - token.created_at).days in {89, 90}
    listed = call("token", "list").out
    assert "10.0.0.0/8, 203.0.113.7/32" in listed
    new = ("token", "create", "x", "--scope", "read")
    assert "not an address" in call(*new, "--address", "here").err
    assert "the time has passed" in call(*new, "--expires", "2020-01-01").err
    assert call(*new, "--expires", "some day").code == 1


def test_tokens_are_listed_without_their_secrets(durable_fleet: Fleet):
    assert "has no API tokens" in call("token", "list").out
    secret = call("token", "create", "ci", "--scope", "read").out.strip()
    listed = call("token", "list")
    assert "ci" in listed.out and secret not in listed.out
    (shown,) = call("token", "list", "--json").json
    assert (shown["name"], shown["scope"], shown["revoked_at"]) == ("ci", "read", None)


def test_a_token_is_revoked_by_its_name_or_number(durable_fleet: Fleet):
    secret = call("token", "create", "ci", "--scope", "read").out.strip()
    number = str(ApiToken.objects.get().pk)
    assert call("token", "revoke", "ci").out == f"token {number} (ci) revoked\n"
    assert find_token(secret, NOON) is None
    assert call("token", "revoke", number).out == f"token {number} (ci) was already revoked\n"
    assert call("token", "revoke", "ci").code == 1


def test_a_name_that_several_have_is_not_enough(durable_fleet: Fleet):
    for _ in range(2):
        call("token", "create", "ci", "--scope", "read")
    said = call("token", "revoke", "ci")
    assert said.code == 1 and "is ambiguous: use one of the numbers" in said.err
    assert not ApiToken.objects.filter(revoked_at__isnull=False).exists()


# --- another tenant's ------------------------------------------------------------------------


@pytest.fixture
def acme(durable_fleet: Fleet) -> Fleet:
    call("tenant", "create", "acme")
    return Fleet(Tenant.objects.get(name="acme"))


COMMANDS: dict[str, Callable[[str], tuple[str, ...]]] = {
    "agent": lambda name: ("run", name),
    "pause": lambda name: ("pause", name),
    "resume": lambda name: ("resume", name),
    "stop agent": lambda name: ("stop", name),
    "queue": lambda name: ("queue", "list", name),
    "clear": lambda name: ("queue", "clear", name),
    "run": lambda key: ("logs", key),
    "rerun": lambda key: ("rerun", key),
    "stop run": lambda key: ("stop", f"run:{key}"),
    "drop": lambda key: ("queue", "drop", key),
    "schedule": lambda key: ("schedule", "show", key),
    "cancel": lambda key: ("schedule", "cancel", key),
    "token": lambda key: ("token", "revoke", key),
}


@pytest.mark.parametrize("name", COMMANDS)
def test_a_command_finds_nothing_of_another_tenant(durable_fleet: Fleet, acme: Fleet, name: str):
    agent = durable_fleet.agent("theirs", scale=1)
    busy = durable_fleet.enqueue(agent)
    objects = {
        "run": busy.runs.get().pk,
        "rerun": busy.runs.get().pk,
        "stop run": busy.runs.get().pk,
        "drop": durable_fleet.enqueue(agent).pk,
        "schedule": durable_fleet.schedule(agent).pk,
        "token": create_token(durable_fleet.tenant, "x", "read", "ann", NOON).row.pk,
    }
    objects["cancel"] = objects["schedule"]
    known = str(objects.get(name, "theirs"))
    unknown = "987654" if name in objects else "unknown"
    states = list(WorkItem.objects.values_list("state", flat=True))
    foreign, none = (call(*COMMANDS[name](of), "--tenant", "acme") for of in (known, unknown))
    assert foreign.code == none.code == 1
    assert foreign.err.replace(known, "?") == none.err.replace(unknown, "?")
    assert list(WorkItem.objects.values_list("state", flat=True)) == states


def test_a_token_needs_a_scope_which_a_terminal_is_asked_for(fleet: Fleet, monkeypatch):
    refused = call("token", "create", "ci")
    assert (refused.code, refused.out) == (1, "")
    assert "--scope is required: read, operate, admin" in refused.err

    class Keyboard(io.StringIO):
        def isatty(self) -> bool:
            return True

    monkeypatch.setattr("sys.stdin", Keyboard("operate\n"))
    made = call("token", "create", "ci", "--json")
    assert made.json["scope"] == "operate"
    assert "run, stop, pause and schedule agents" in made.err
    monkeypatch.setattr("sys.stdin", Keyboard("all\n"))
    assert "'all' is not a scope" in call("token", "create", "ci").err
