"""Action Llama's directory of credentials: what is read, and what is reported."""

import os
from pathlib import Path

import pytest

from agents_app.errors import NotFound
from agents_app.formats.credential_files import CredentialDirectory, read_credentials
from tests.agents_app.formats.written import write

CANARY = "canary-of-the-mine-4711"
KEY = "-----BEGIN KEY-----\nb3BlbnNzaC1rZXktdjEAAAAABG5vbmU\n-----END KEY-----\n"


@pytest.fixture
def home(tmp_path: Path) -> Path:
    (tmp_path / "credentials").mkdir()
    return tmp_path / "credentials"


def read(home: Path, files: dict[str, str | bytes]) -> CredentialDirectory:
    write(home, files)
    for path in home.rglob("*"):
        if path.is_file() and not path.is_symlink():
            path.chmod(0o600)
    return read_credentials(home)


def values(found: CredentialDirectory) -> dict[str, dict[str, str]]:
    return {str(one.name): dict(one.values) for one in found.credentials}


def test_each_instance_is_a_credential_with_the_fields_of_drover(home: Path):
    found = read(
        home,
        {
            "github_token/default/token": f"{CANARY}\n",
            "github_token/work/token": f"{CANARY}-2\n",
            "github_webhook_secret/shop/secret": CANARY,
            "git_ssh/default/id_rsa": KEY,
            "git_ssh/default/username": "Ann",
            "git_ssh/default/email": "ann@example.com",
            "aws/default/access_key_id": "AKIA-of-the-mine",
            "aws/default/secret_access_key": CANARY,
            "aws/default/default_region": "eu-central-1",
            "reddit_oauth/default/client_secret": CANARY,
            "reddit_oauth/default/password": CANARY,
            "my_own/default/anything": CANARY,
        },
    )
    assert (found.report, found.errors) == ([], [])
    assert values(found) == {
        "aws": {
            "access_key_id": "AKIA-of-the-mine",
            "region": "eu-central-1",
            "secret_access_key": CANARY,
        },
        "git_ssh": {"value": KEY, "username": "Ann", "email": "ann@example.com"},
        "github_token": {"value": f"{CANARY}\n"},
        "github_token:work": {"value": f"{CANARY}-2\n"},
        "github_webhook_secret:shop": {"value": CANARY},
        "my_own": {"value": CANARY},
        "reddit_oauth": {"client_secret": CANARY, "password": CANARY},
    }


def test_no_value_is_in_a_message_or_a_representation(home: Path):
    found = read(home, {"github_token/default/token": CANARY, "x/y/a": CANARY, "x/y/b": CANARY})
    assert CANARY not in repr(found)


def test_a_type_with_fields_that_drover_does_not_know_is_refused_with_their_names(home: Path):
    found = read(home, {"x_thing/default/client_id": CANARY, "x_thing/default/other": CANARY})
    assert values(found) == {}
    assert [(error.file, error.field) for error in found.errors] == [("x_thing/default", "type")]
    assert "(client_id, other)" in found.errors[0].why


def test_a_field_beside_the_secret_is_left_out_and_reported(home: Path):
    found = read(home, {"sentry_token/default/token": CANARY, "sentry_token/default/org": "acme"})
    assert values(found) == {"sentry_token": {"value": CANARY}}
    assert [(line.file, line.field) for line in found.report] == [("sentry_token/default", "org")]


def test_another_variable_than_before_is_reported(home: Path):
    found = read(home, {"linear_token/default/token": CANARY})
    assert "LINEAR_API_TOKEN" in found.report[0].why
    assert "LINEAR_API_KEY" in found.report[0].why


def test_files_that_other_users_can_read_are_reported(home: Path):
    read(home, {"github_token/default/token": CANARY})
    (home / "github_token/default/token").chmod(0o640)
    found = read_credentials(home)
    assert [(line.file, line.field) for line in found.report] == [
        ("github_token/default/token", "mode")
    ]
    assert "(mode 0640)" in found.report[0].why
    assert len(found.credentials) == 1


def test_what_is_no_credential_is_reported_and_the_rest_is_read(home: Path):
    (home / "github_token/default/deeper").mkdir(parents=True)
    (home / "empty/default").mkdir(parents=True)
    found = read(
        home,
        {
            "README": "x",
            "github_token/notes": "x",
            "github_token/default/token": CANARY,
            "github_token/default/.DS_Store": "x",
            "npm_token/default/token": " \n",
            "gateway_api_key/default/key": CANARY,
        },
    )
    assert values(found) == {"github_token": {"value": CANARY}}
    assert {line.file for line in found.report} == {
        "README",
        "github_token/notes",
        "github_token/default/deeper",
        "github_token/default/.DS_Store",
        "npm_token/default/token",
        "npm_token/default",
        "empty/default",
        "gateway_api_key",
    }
    assert found.errors == []


def test_links_out_of_the_directory_are_refused(home: Path, tmp_path: Path):
    outside = write(tmp_path / "outside", {"token": CANARY, "default/token": CANARY})
    (home / "github_token/default").mkdir(parents=True)
    (home / "github_token/default/token").symlink_to(outside / "token")
    (home / "github_token/linked").symlink_to(outside / "default")
    (home / "npm_token").symlink_to(outside)
    found = read(home, {"gitlab_token/real/token": CANARY})
    (home / "gitlab_token/same").symlink_to("real")
    found = read_credentials(home)
    assert values(found) == {
        "gitlab_token:real": {"value": CANARY},
        "gitlab_token:same": {"value": CANARY},
    }
    assert {error.file for error in found.errors} == {
        "github_token/default/token",
        "github_token/linked",
        "npm_token",
    }


@pytest.mark.parametrize("data", [b"\xff\xfe" * 20, b"x" * 200_000])
def test_a_file_that_is_no_text_or_too_long_refuses_its_credential(home: Path, data):
    found = read(home, {"aws/default/secret_access_key": data, "aws/default/access_key_id": CANARY})
    assert values(found) == {}
    assert [error.file for error in found.errors] == ["aws/default/secret_access_key"]


def test_a_fifo_is_not_waited_for(home: Path):
    (home / "github_token/default").mkdir(parents=True)
    os.mkfifo(home / "github_token/default/token")
    found = read_credentials(home)
    assert [error.file for error in found.errors] == ["github_token/default/token"]
    assert found.credentials == []


@pytest.mark.parametrize("name", ["a b", "x" * 65, "-a"])
def test_a_name_that_drover_does_not_have_is_refused(home: Path, name):
    found = read(home, {f"{name}/default/token": CANARY, "ok/default/token": CANARY})
    assert list(values(found)) == ["ok"]
    assert [error.field for error in found.errors] == ["name"]


def test_a_directory_that_does_not_exist_is_refused(tmp_path: Path):
    with pytest.raises(NotFound, match="is not a directory"):
        read_credentials(tmp_path / "none")
