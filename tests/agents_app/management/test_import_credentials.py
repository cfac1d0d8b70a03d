"""`import credentials`: Action Llama's directory into the store, and no value anywhere else."""

from pathlib import Path

import pytest

from agents_app.models import Credential, RunEvent
from agents_app.secrets import for_run
from tests.agents_app.fleet import Fleet
from tests.agents_app.management.calling import Said, call

CANARY = "canary-of-the-mine-4711"


@pytest.fixture
def directory(tmp_path: Path, durable_fleet: Fleet) -> Path:
    for name in ("github_token/default/token", "openai_key/work/token"):
        set_file(tmp_path / "credentials" / name, CANARY)
    return tmp_path / "credentials"


def set_file(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.touch(0o600)
    path.write_text(text)


def run_import(directory: Path, *options: str) -> Said:
    said = call("import", "credentials", str(directory), *options)
    assert CANARY not in said.out + said.err
    return said


def states(said: Said) -> dict[str, str]:
    return {one["credential"]: one["state"] for one in said.json["credentials"]}


def value_of(fleet: Fleet, name: str) -> str:
    return next(iter(for_run(fleet.tenant.pk, [name]).env.values()))


def test_credentials_are_stored_and_shown_by_name_only(durable_fleet: Fleet, directory: Path):
    said = run_import(directory)
    assert (said.code, said.err) == (0, "")
    lines = said.out.splitlines()
    assert lines[0] == f"credentials of Action Llama {directory} -> tenant default"
    assert lines[2].split() == ["github_token/default", "github_token", "created"]
    assert lines[-1] == "credentials: 2 created"
    assert value_of(durable_fleet, "github_token") == CANARY
    assert value_of(durable_fleet, "openai_key:work") == CANARY
    assert CANARY not in str([vars(row) for row in Credential.objects.all()])
    assert CANARY not in str([vars(row) for row in RunEvent.objects.all()])


def test_a_second_import_changes_nothing(directory: Path):
    run_import(directory)
    before = list(Credential.objects.values())
    assert states(run_import(directory, "--json")) == {
        "github_token": "unchanged",
        "openai_key:work": "unchanged",
    }
    assert list(Credential.objects.values()) == before


def test_a_changed_file_replaces_what_no_person_has_set_since(
    durable_fleet: Fleet, directory: Path, tmp_path: Path
):
    run_import(directory)
    (tmp_path / "own").write_text("another-token")
    call("credential", "set", "openai_key:work", "--file", str(tmp_path / "own"))
    for path in directory.rglob("token"):
        path.write_text(f"{CANARY}-new")
    said = run_import(directory, "--json")
    assert states(said) == {"github_token": "replaced", "openai_key:work": "kept"}
    assert [line["file"] for line in said.json["report"]] == ["openai_key/work"]
    assert value_of(durable_fleet, "github_token") == f"{CANARY}-new"
    assert value_of(durable_fleet, "openai_key:work") == "another-token"


def test_a_dry_run_stores_nothing(directory: Path):
    assert "2 created (dry run: nothing written)" in run_import(directory, "--dry-run").out
    assert not Credential.objects.exists()


def test_the_directory_of_the_user_is_the_default(directory: Path, monkeypatch: pytest.MonkeyPatch):
    home = directory.parent / "home"
    (home / ".action-llama").mkdir(parents=True)
    directory.rename(home / ".action-llama/credentials")
    monkeypatch.setenv("HOME", str(home))
    document = call("import", "credentials", "--json").json
    assert list(document) == [
        *("directory", "tenant", "dry_run", "credentials", "report", "errors"),
    ]
    assert document["directory"] == str(home / ".action-llama/credentials")
    assert len(document["credentials"]) == 2


def test_a_value_that_cannot_be_redacted_is_refused_and_the_rest_stored(directory: Path):
    set_file(directory / "npm_token/default/token", "short")
    said = run_import(directory)
    assert said.code == 1
    assert "npm_token/default: value: npm_token: must have at least" in said.err
    assert "short;" not in said.err
    assert Credential.objects.count() == 2


def test_options_of_agents_are_refused(directory: Path, tmp_path: Path):
    assert "--enable is for agents" in run_import(directory, "--enable").err
    assert "--into is for agents" in run_import(directory, "--into", str(tmp_path)).err
    assert "one source at a time" in call("import", "a", "b").err
    assert "there is no tenant" in run_import(directory, "--tenant", "acme").err
    assert "--tenant is for" in call("import", "a", "--tenant", "acme").err
