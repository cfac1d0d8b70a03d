"""`credential`: set from a pipe, a file or a prompt, listed without values, removed, rotated."""

import getpass
import io
import sys
from pathlib import Path

import pytest

from agents_app.conf import CONF
from agents_app.models import Credential
from agents_app.secrets.sealing import keys
from agents_app.secrets.store import for_run
from tests.agents_app.fleet import Fleet
from tests.agents_app.management.calling import Said, call

CANARY = "canary-of-the-mine-4711"


@pytest.fixture
def pipe(monkeypatch: pytest.MonkeyPatch):
    def piped(text: str, *arguments: str) -> Said:
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(text.encode())))
        return call("credential", *arguments)

    return piped


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def env_of(fleet: Fleet, name: str) -> dict[str, str]:
    return dict(for_run(fleet.tenant.pk, [name]).env)


def test_a_value_comes_from_a_pipe(durable_fleet: Fleet, pipe):
    said = pipe(f"{CANARY}\n", "set", "github_token:work")
    assert said.out == "github_token:work set; used by runs that start from now on\n"
    assert env_of(durable_fleet, "github_token:work")["GH_TOKEN"] == CANARY
    assert " replaced; " in pipe("another-token", "set", "github_token:work").out
    assert pipe(CANARY, "set", "npm_token", "--json").json == {
        "credential": "npm_token",
        "new": True,
    }


def test_a_value_comes_from_a_file(durable_fleet: Fleet, tmp_path: Path):
    (tmp_path / "token").write_text(f"{CANARY}\n")
    call("credential", "set", "npm_token", "--file", str(tmp_path / "token"))
    assert env_of(durable_fleet, "npm_token")["NPM_TOKEN"] == CANARY
    assert "No such file" in call("credential", "set", "npm_token", "--file", "/no/such").err
    (tmp_path / "token").write_bytes(b"\xff\xfe" * 10)
    said = call("credential", "set", "npm_token", "--file", str(tmp_path / "token"))
    assert "is not UTF-8 text" in said.err


def test_a_person_is_asked_without_an_echo(durable_fleet: Fleet, monkeypatch: pytest.MonkeyPatch):
    asked: list[str] = []
    answers = iter(["AKIA0123456789", CANARY, "", "eu-1"])
    monkeypatch.setattr(sys, "stdin", Terminal())
    monkeypatch.setattr(getpass, "getpass", lambda text: asked.append(text) or next(answers))
    assert call("credential", "set", "aws").code == 0
    assert asked[1:3] == ["aws secret_access_key: ", "aws session_token (optional): "]
    assert env_of(durable_fleet, "aws")["AWS_SECRET_ACCESS_KEY"] == CANARY


@pytest.mark.parametrize(
    ("text", "name", "said"),
    [
        ("short", "github_token", "at least 8 characters"),
        (CANARY, "aws", "expected a JSON object with the texts access_key_id"),
        (f'{{"access_key_id": ["{CANARY}"]}}', "aws", "expected a JSON object"),
        (CANARY, "a b", "write 'type' or 'type:instance'"),
    ],
)
def test_what_is_refused_is_not_repeated(durable_fleet: Fleet, pipe, text, name, said):
    answer = pipe(text, "set", name)
    assert answer.code == 1 and said in answer.err
    assert CANARY not in answer.err + answer.out
    assert not Credential.objects.exists()


def test_a_secret_is_no_argument(durable_fleet: Fleet):
    """Guard: every user of the machine can read the arguments of a program."""
    said = call("credential", "set", "github_token", CANARY)
    assert "unrecognized arguments" in said.err


def test_credentials_are_listed_with_their_author_and_agents(durable_fleet: Fleet, pipe):
    assert "has no credentials" in call("credential", "list").out
    durable_fleet.agent(credentials=["github_token"])
    pipe(CANARY, "set", "github_token")
    said = call("credential", "list")
    assert "github_token" in said.out and "reporter" in said.out and CANARY not in said.out
    (one,) = call("credential", "list", "--json").json
    assert (one["credential"], one["instance"], one["agents"]) == (
        "github_token",
        "default",
        ["reporter"],
    )
    assert CANARY not in str(one) and "sealed" not in one


def test_one_is_removed(durable_fleet: Fleet, pipe):
    pipe(CANARY, "set", "github_token")
    assert call("credential", "remove", "github_token").out == "github_token removed\n"
    assert "there is no credential github_token" in call("credential", "remove", "github_token").err


def test_rotating_with_a_new_key_makes_the_old_one_needless(durable_fleet: Fleet, pipe):
    pipe(CANARY, "set", "github_token")
    path = CONF.data / "credential_keys"
    before = path.read_text()
    said = call("credential", "rotate", "--new-key")
    assert said.out == "encrypted with the newest key: 1 credentials, 0 webhook secrets\n"
    path.write_text(path.read_text().split("\n")[0])
    keys.cache_clear()
    assert env_of(durable_fleet, "github_token")["GH_TOKEN"] == CANARY
    assert path.stat().st_mode & 0o777 == 0o600
    path.write_text(before)
    said = call("credential", "rotate", "--json")
    assert said.json["credentials"] == {"sealed": 0, "broken": ["github_token:default"]}
    assert said.code == 1 and "no key decrypts github_token:default" in said.err
