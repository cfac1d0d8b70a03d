"""The signal `metadata`: values that hooks of the run get."""

from typing import Any

import pytest

from agents_app.errors import DroverError
from agents_app.secrets.credentials import set_credential
from agents_app.secrets.types import parse_name
from tests.agents_app.calling import Program, program
from tests.agents_app.fleet import NOON, Fleet

CANARY = "canary-of-the-mine-4711"


@pytest.fixture
def one(fleet: Fleet) -> Program:
    return program(fleet, fleet.agent())


@pytest.mark.parametrize(
    ("value", "stored"),
    [
        ("true", True),
        ("0", 0),
        ("null", None),
        ('{"a": [1, "b"]}', {"a": [1, "b"]}),
        ('"quoted"', "quoted"),
        ("plain text", "plain text"),
        ("", ""),
        ("NaN", "NaN"),
        ('{"a": 1, "a": 2}', '{"a": 1, "a": 2}'),
        ('"\\u0000\\ud800"', "\0\ud800"),
        ("[" * 5000, "[" * 5000),
    ],
)
def test_metadata_is_json_if_it_can_be_read_as_such(one: Program, value: str, stored: Any):
    assert one.says("metadata", key="k", value=value) == {"ok": True}
    assert one.run.metadata == {"k": stored}


def test_metadata_is_added_value_by_value(one: Program):
    one.says("metadata", key="price", value="12.5")
    one.says("metadata", key="shop", value="corner")
    one.says("metadata", key="price", value="11")
    assert one.run.metadata == {"price": 11, "shop": "corner"}


def test_metadata_has_valid_keys_and_an_upper_limit(one: Program):
    for key in ("", "a.b", "é", "x" * 101, "a b"):
        with pytest.raises(DroverError, match="key"):
            one.says("metadata", key=key, value="x")
    one.says("metadata", key="a", value="x" * 60_000)
    with pytest.raises(DroverError) as caught:
        one.says("metadata", key="b", value="x" * 10_000)
    assert caught.value.http_status == 413
    assert list(one.run.metadata) == ["a"]


def test_secrets_are_removed_from_metadata(fleet: Fleet):
    set_credential(fleet.tenant, parse_name("github_token"), {"value": CANARY}, "ann", NOON)
    keeper = program(fleet, fleet.agent(credentials=["github_token"]))
    keeper.says("metadata", key="k", value=f'["{CANARY}"]')
    assert keeper.run.metadata == {"k": ["[redacted github_token]"]}
    with pytest.raises(DroverError, match="key"):
        keeper.says("metadata", key=CANARY, value="x")
    assert CANARY not in keeper.run.metadata_json
