"""The test vectors of RFC 8032, 7.1, and invalid keys and signatures."""

import pytest

from agents_app.webhooks.providers.ed25519 import verify
from tests.agents_app.webhooks.providers.signing import SEED, ed25519_public, ed25519_sign

VECTORS = [
    (
        "d75a980182b10ab7d54bfed3c964073a0ee172f3daa62325af021a68f707511a",
        "",
        "e5564300c360ac729086e2cc806e828a84877f1eb8e5d974d873e06522490155"
        "5fb8821590a33bacc61e39701cf9b46bd25bf5f0595bbe24655141438e7a100b",
    ),
    (
        "3d4017c3e843895a92b70aa74d1b7ebc9c982ccf2ec4968cc0cd55f12af4660c",
        "72",
        "92a009a9f0d4cab8720e820b5f642540a2b27b5416503f8fb3762223ebdb69da"
        "085ac1e43e15996e458f3613d0f11d8c387b2eaeb4302aeeb00d291612bb0c00",
    ),
]
PUBLIC = ed25519_public(SEED)
# The order of the group: adding it to a signature gives another encoding of the same number.
ORDER = 2**252 + 27742317777372353535851937790883648493


@pytest.mark.parametrize(("key", "message", "signature"), VECTORS)
def test_the_test_vectors_of_rfc_8032_are_valid(key, message, signature):
    given = bytes.fromhex(signature)
    assert verify(bytes.fromhex(key), given, bytes.fromhex(message))
    assert not verify(bytes.fromhex(key), given, bytes.fromhex(message) + b"!")


def test_a_modified_signature_is_refused():
    first = ed25519_sign(SEED, b"m")
    s = int.from_bytes(first[32:], "little") + ORDER
    assert verify(PUBLIC, first, b"m")
    assert not verify(PUBLIC, first[:32] + s.to_bytes(32, "little"), b"m")


def test_a_key_of_small_order_is_refused():
    neutral = (1).to_bytes(32, "little")
    assert not verify(neutral, neutral + bytes(32), b"m")


@pytest.mark.parametrize("key", [b"", b"x", b"\xff" * 32, PUBLIC[:-1]])
def test_an_invalid_key_verifies_nothing(key):
    assert not verify(key, ed25519_sign(SEED, b"m"), b"m")


@pytest.mark.parametrize("signature", [b"", bytes(63), b"\xff" * 64])
def test_an_invalid_signature_is_refused(signature):
    assert not verify(PUBLIC, signature, b"m")
