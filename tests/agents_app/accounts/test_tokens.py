"""Tokens: kept as a hash, accepted until they expire or are revoked, and from their addresses."""

from datetime import UTC, datetime, timedelta

import pytest

from agents_app.accounts.tokens import (
    MOST_ADDRESSES,
    create_token,
    ensure_bootstrap_token,
    find_token,
    may_be_used_from,
    revoke_token,
    rotate_tokens,
    token_hash,
    tokens_in_force,
)
from agents_app.errors import ConfigError, Refused
from agents_app.models import ApiToken, RunEvent, Tenant
from tests.agents_app.fleet import NOON

pytestmark = pytest.mark.django_db
TOKEN = "a-token-for-this-test"


@pytest.fixture
def tenant() -> Tenant:
    return Tenant.objects.create(name="default")


def test_the_token_itself_is_nowhere_in_its_row(tenant: Tenant):
    assert ensure_bootstrap_token(tenant, TOKEN)
    (row,) = ApiToken.objects.values()
    assert TOKEN not in str(row)
    assert row["sha256"] == token_hash(TOKEN)


def test_the_same_token_at_the_next_start_makes_no_second_one(tenant: Tenant):
    ensure_bootstrap_token(tenant, TOKEN)
    assert not ensure_bootstrap_token(tenant, TOKEN)
    assert ApiToken.objects.count() == 1


def test_a_token_that_was_revoked_stays_revoked(tenant: Tenant):
    ensure_bootstrap_token(tenant, TOKEN)
    ApiToken.objects.update(revoked_at=datetime.now(UTC))
    ensure_bootstrap_token(tenant, TOKEN)
    assert ApiToken.objects.get().revoked_at is not None


def test_a_trivial_token_is_refused_and_not_repeated_in_the_message(tenant: Tenant):
    with pytest.raises(ConfigError) as refused:
        ensure_bootstrap_token(tenant, "hunter2")
    assert "hunter2" not in str(refused.value)


# --- limits ---------------------------------------------------------------------------------

HOUR = timedelta(hours=1)


def test_a_token_is_refused_from_its_expiry_on(tenant: Tenant):
    made = create_token(tenant, "ci", "read", "ann", NOON, expires_at=NOON + HOUR)
    moment_before = NOON + HOUR - timedelta(microseconds=1)
    assert find_token(made.secret, moment_before) == made.row
    assert find_token(made.secret, NOON + HOUR) is None
    assert tokens_in_force([made.row.pk], moment_before)
    assert not tokens_in_force([made.row.pk], NOON + HOUR)


def test_a_token_without_an_expiry_is_accepted_for_ever(tenant: Tenant):
    made = create_token(tenant, "ci", "read", "ann", NOON)
    assert find_token(made.secret, NOON + 100_000 * HOUR) == made.row
    assert may_be_used_from(made.row, "") and may_be_used_from(made.row, "203.0.113.7")


@pytest.mark.parametrize(
    ("networks", "address", "accepted"),
    [
        (["203.0.113.7"], "203.0.113.7", True),
        (["203.0.113.7"], "203.0.113.8", False),
        (["10.0.0.0/8", "203.0.113.9/24"], "203.0.113.7", True),
        (["10.0.0.0/8"], "::ffff:10.1.2.3", True),
        (["2001:db8::/32"], "2001:db8:1::5", True),
        (["2001:db8::/32"], "10.1.2.3", False),
        (["10.0.0.0/8"], "", False),
        (["0.0.0.0/0"], "not an address", False),
    ],
)
def test_a_token_is_for_its_addresses(
    tenant: Tenant, networks: list[str], address: str, accepted: bool
):
    made = create_token(tenant, "ci", "read", "ann", NOON, addresses=networks)
    token = find_token(made.secret, NOON)
    assert token is not None and may_be_used_from(token, address) is accepted


@pytest.mark.parametrize(
    ("limits", "said"),
    [
        ({"expires_at": NOON}, "expires: the time has passed"),
        ({"addresses": ["10.0.0"]}, "addresses: '10.0.0' is not an address"),
        ({"addresses": [""]}, "addresses: '' is not an address"),
        ({"addresses": [f"10.0.{n}.0/24" for n in range(MOST_ADDRESSES + 1)]}, "at most 100"),
    ],
)
def test_limits_that_mean_nothing_are_refused(tenant: Tenant, limits: dict, said: str):
    with pytest.raises(Refused, match=said):
        create_token(tenant, "ci", "read", "ann", NOON, **limits)
    assert not ApiToken.objects.exists()


def test_the_journal_has_the_limits(tenant: Tenant):
    create_token(
        *(tenant, "ci", "read", "ann", NOON),
        expires_at=NOON + HOUR,
        addresses=["10.0.0.0/8", "10.0.0.0/8"],
    )
    expected = "ann: ci (read, until 2026-03-02 13:00 UTC, from 10.0.0.0/8)"
    assert RunEvent.objects.get().detail == expected


def test_a_rotated_token_keeps_its_limits_and_an_expired_one_is_not_rotated(tenant: Tenant):
    limits = {"expires_at": NOON + HOUR, "addresses": ["10.0.0.0/8"]}
    create_token(tenant, "old", "read", "ann", NOON - 3 * HOUR, expires_at=NOON - HOUR)
    create_token(tenant, "ci", "read", "ann", NOON, **limits)
    [made] = rotate_tokens(tenant, "ann", NOON)
    kept = (made.row.name, made.row.expires_at, made.row.addresses)
    assert kept == ("ci", *limits.values())


def test_an_expired_token_can_be_revoked(tenant: Tenant):
    made = create_token(tenant, "old", "read", "ann", NOON - HOUR, expires_at=NOON)
    assert revoke_token(made.row, "ann", NOON + HOUR)
