"""What a credential of each type becomes in a run, and which values are refused."""

from pathlib import Path

import pytest

from agents_app.errors import Refused
from agents_app.secrets.types import (
    CREDENTIAL_TYPES,
    Name,
    checked_values,
    normalized_value,
    parse_name,
    provided_secrets,
    resolved_file_variables,
)

TOKEN = "a-token-of-some-length"
KEY = "-----BEGIN KEY-----\nb3BlbnNzaC1rZXktdjEAAAAABG5vbmU\n-----END KEY-----\n"


@pytest.mark.parametrize(
    ("text", "name"),
    [("github_token", Name("github_token", "default")), ("aws:prod", Name("aws", "prod"))],
)
def test_a_name_is_a_type_and_maybe_an_instance(text, name):
    assert parse_name(text) == name
    assert str(name) == text


@pytest.mark.parametrize("text", ["", ":", "a:", ":b", "-x", "a b", "a:b:c", "x" * 65, "a\n"])
def test_anything_else_is_no_name(text):
    with pytest.raises(Refused, match="write 'type' or 'type:instance'"):
        parse_name(text)


@pytest.mark.parametrize(
    ("name", "variables"),
    [
        ("github_token", {"GITHUB_TOKEN", "GH_TOKEN"}),
        ("anthropic_key", {"ANTHROPIC_API_KEY"}),
        ("openai_key", {"OPENAI_API_KEY", "CODEX_API_KEY"}),
        ("sentry_token", {"SENTRY_AUTH_TOKEN"}),
        ("linear_token", {"LINEAR_API_KEY"}),
        ("slack_bot_token", {"SLACK_BOT_TOKEN"}),
        ("my-own.thing", {"MY_OWN_THING"}),
        ("7zip", {"_7ZIP"}),
        (
            "github_token:at-work",
            {"GITHUB_TOKEN", "GH_TOKEN", "GITHUB_TOKEN_AT_WORK", "GH_TOKEN_AT_WORK"},
        ),
    ],
)
def test_a_token_is_in_the_variables_that_programs_look_at(name, variables):
    got = provided_secrets(parse_name(name), {"value": TOKEN})
    assert got.env == dict.fromkeys(variables, TOKEN)
    assert (got.files, got.secrets) == ((), (TOKEN,))


def test_a_type_may_have_several_fields_not_all_of_them_secret():
    values = {"access_key_id": "AKIA0000", "secret_access_key": TOKEN, "region": "eu-1"}
    got = provided_secrets(Name("aws"), checked_values(Name("aws"), values))
    assert got.env == {
        "AWS_ACCESS_KEY_ID": "AKIA0000",
        "AWS_SECRET_ACCESS_KEY": TOKEN,
        "AWS_REGION": "eu-1",
        "AWS_DEFAULT_REGION": "eu-1",
    }
    assert got.secrets == ("AKIA0000", TOKEN)


def test_a_key_for_git_is_a_file_with_variables_for_git():
    got = provided_secrets(Name("git_ssh"), {"value": KEY})
    (file,) = got.files
    assert (got.env, file.text, got.secrets) == ({}, KEY, (KEY,))
    env = resolved_file_variables(file.variables, Path("/a room/key"))
    assert env["GIT_SSH_KEY_FILE"] == "/a room/key"
    assert env["GIT_SSH_COMMAND"].startswith("ssh -i '/a room/key' -o IdentitiesOnly=yes ")


def test_a_key_for_git_may_name_the_author_of_commits():
    values = {"value": KEY, "username": "Ann", "email": "ann@example.com"}
    got = provided_secrets(Name("git_ssh"), checked_values(Name("git_ssh"), values))
    assert got.env == {
        "GIT_AUTHOR_NAME": "Ann",
        "GIT_COMMITTER_NAME": "Ann",
        "GIT_AUTHOR_EMAIL": "ann@example.com",
        "GIT_COMMITTER_EMAIL": "ann@example.com",
    }
    assert (len(got.files), got.secrets) == (1, (KEY,))


def test_several_lines_of_any_other_type_are_a_file_as_well():
    got = provided_secrets(Name("netrc", "prod"), {"value": KEY})
    assert got.env == {"NETRC": KEY, "NETRC_PROD": KEY}
    assert got.files[0].variables == {"NETRC_FILE": "{path}", "NETRC_FILE_PROD": "{path}"}


@pytest.mark.parametrize(
    ("name", "values", "said"),
    [
        ("github_token", {"value": "short"}, "at least 8 characters"),
        ("github_token", {"value": "  \n"}, "value is missing or empty"),
        ("github_token", {"value": "with\0a nul"}, "without NUL"),
        ("github_token", {"value": "x" * 200_000}, "at most 100000 bytes"),
        ("github_token", {"token": TOKEN}, "has no field 'token'; its fields are value"),
        (
            "lines",
            {"value": "one\ntwo\nthree"},
            "one of the lines must have at least 16 characters",
        ),
        ("aws", {"access_key_id": "AKIA0000"}, "secret_access_key is missing"),
        ("path", {"value": TOKEN}, "the variable PATH is reserved"),
        ("drover-run-token", {"value": TOKEN}, "the variable DROVER_RUN_TOKEN is reserved"),
    ],
)
def test_an_invalid_value_is_refused_and_not_repeated(name, values, said):
    with pytest.raises(Refused, match=said) as refused:
        checked_values(parse_name(name), values)
    assert TOKEN not in str(refused.value)


@pytest.mark.parametrize(
    ("text", "kept"),
    [("token\n", "token"), (" token \r\n", "token"), ("one\r\ntwo", "one\ntwo\n"), (KEY, KEY)],
)
def test_line_ends_are_as_programs_expect_them(text, kept):
    assert normalized_value(text) == kept


def test_every_type_can_be_given():
    for kind, how in CREDENTIAL_TYPES.items():
        values = dict.fromkeys(how.fields, TOKEN)
        got = provided_secrets(Name(kind), checked_values(Name(kind), values))
        assert got.env or got.files, kind
