"""The token of a first start: kept as a hash, made once."""

from datetime import UTC, datetime

import pytest

from agents_app.accounts.tokens import ensure_bootstrap_token, token_hash
from agents_app.errors import ConfigError
from agents_app.models import ApiToken, Tenant

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
