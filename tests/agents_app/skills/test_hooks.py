"""Hooks refer to variables of the credentials that their agent declares, and to no others."""

import pytest

from tests.agents_app.skills.reading import agent, problem

WEBHOOK = "hooks: {after_run: [{type: webhook, url: 'https://x.example/', headers: {A: '%s'}}]}"


@pytest.mark.parametrize(
    ("credentials", "value"),
    [
        ("github_token", "Bearer ${GITHUB_TOKEN}"),
        ("github_token", "${GH_TOKEN}"),
        ("github_token:work", "${GITHUB_TOKEN_WORK}"),
        ("aws", "${AWS_ACCESS_KEY_ID}:${AWS_SECRET_ACCESS_KEY}"),
        ("ci_token", "${CI_TOKEN}"),
    ],
)
def test_a_header_may_have_variables_of_declared_credentials(credentials: str, value: str):
    spec = agent(f"credentials: ['{credentials}']\n{WEBHOOK % value}")
    assert spec.hooks.after_run[0].headers == {"A": value}


@pytest.mark.parametrize("value", ["${GITHUB_TOKEN}", "${HOME}", "${CI_TOKEN}${DJANGO_SECRET_KEY}"])
def test_any_other_variable_is_refused(value: str):
    text = f"credentials: [ci_token]\n{WEBHOOK % value}"
    assert "is not a variable of a credential of this agent" in problem(agent, text)


@pytest.mark.parametrize(
    ("credential", "hook"),
    [
        ("slack_bot_token", "{type: slack, channel_id: C1}"),
        ("discord_token", "{type: discord, channel_id: '99'}"),
        ("bot", "{type: discord, channel_id: '99', bot_token_env: BOT}"),
        ("slack_url", "{type: slack, url: '${SLACK_URL}'}"),
    ],
)
def test_a_bot_needs_the_credential_with_its_token(credential: str, hook: str):
    written = f"hooks: {{on_error: [{hook}]}}"
    assert len(agent(f"credentials: [{credential}]\n{written}").hooks.on_error) == 1
    assert "is not a variable of a credential of this agent" in problem(agent, written)


def test_hooks_of_config_toml_replace_those_of_skill_md():
    skill = "hooks: {pre: [a], after_run: [./x.sh, ./y.sh]}"
    config = "[[hooks.after_run]]\ntype = 'notify'\nmessage = 'done'\n"
    spec = agent(skill, config=config)
    assert (spec.hooks.pre, [each.type for each in spec.hooks.after_run]) == (("a",), ["notify"])


def test_a_hook_may_have_credentials_that_the_program_does_not_get():
    written = "hooks: {credentials: [ci_token], on_error: [{type: slack, url: '${CI_TOKEN}'}]}"
    spec = agent(written)
    assert (spec.credentials, spec.hooks.credentials) == ((), ("ci_token",))
