"""Secrets are decrypted only with their keys, and only for the row that stores them."""

import stat

import pytest
from cryptography.fernet import Fernet

from agents_app.errors import ConfigError
from agents_app.secrets.sealing import BrokenSeal, Keys, read_keys, reseal, seal, unseal

OLD, NEW = (Fernet.generate_key().decode() for _ in range(2))


def test_what_was_sealed_can_be_opened_again():
    sealed = seal(Keys((OLD,)), 1, "main", "geheim ☃")
    assert "geheim" not in sealed
    assert unseal(Keys((OLD,)), sealed, 1, "main") == "geheim ☃"


@pytest.mark.parametrize(("tenant", "name"), [(2, "main"), (1, "other")])
def test_a_text_copied_into_another_row_opens_nothing(tenant, name):
    sealed = seal(Keys((OLD,)), 1, "main", "geheim")
    with pytest.raises(BrokenSeal, match="another name or tenant"):
        unseal(Keys((OLD,)), sealed, tenant, name)


def test_a_secret_without_its_key_is_refused_with_a_remedy():
    sealed = seal(Keys((OLD,)), 1, "main", "geheim")
    with pytest.raises(BrokenSeal, match="DROVER_CREDENTIAL_KEYS"):
        unseal(Keys((NEW,)), sealed, 1, "main")


def test_a_changed_byte_is_noticed():
    sealed = seal(Keys((OLD,)), 1, "main", "geheim")
    changed = sealed[:40] + ("A" if sealed[40] != "A" else "B") + sealed[41:]
    with pytest.raises(BrokenSeal):
        unseal(Keys((OLD,)), changed, 1, "main")


def test_after_a_rotation_the_old_key_is_no_longer_needed():
    sealed = seal(Keys((OLD,)), 1, "main", "geheim")
    both = Keys((NEW, OLD))
    assert unseal(both, sealed, 1, "main") == "geheim"
    assert unseal(Keys((NEW,)), reseal(both, sealed), 1, "main") == "geheim"
    assert both.first_id == Keys((NEW,)).first_id != Keys((OLD,)).first_id


def test_the_first_use_makes_a_key_that_only_its_owner_may_read(tmp_path):
    keys = read_keys({}, tmp_path / "data")
    path = tmp_path / "data" / "credential_keys"
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert read_keys({}, tmp_path / "data") == keys
    assert [one.name for one in path.parent.iterdir()] == ["credential_keys"]


def test_keys_in_the_environment_win_over_the_file(tmp_path):
    assert read_keys({"DROVER_CREDENTIAL_KEYS": f"{NEW}, {OLD}"}, tmp_path).all == (NEW, OLD)
    assert not list(tmp_path.iterdir())


def test_an_invalid_key_is_named_by_its_number_and_not_repeated(tmp_path):
    with pytest.raises(ConfigError) as refused:
        read_keys({"DROVER_CREDENTIAL_KEYS": f"{NEW},oops-secret"}, tmp_path)
    text = "DROVER_CREDENTIAL_KEYS: key 2 is not a valid Fernet key"
    assert str(refused.value).startswith(text)
    assert "oops" not in str(refused.value) and NEW not in str(refused.value)
