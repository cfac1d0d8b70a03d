"""A refusal takes as long for each source of a provider, and for a source that does not exist."""

import base64
import time
from collections.abc import Mapping

import pytest

from agents_app.webhooks import IndexedSource, SourceIndex
from agents_app.webhooks.providers import PROVIDERS, Signed
from gateway_app.webhooks.examine import examine
from tests.agents_app.webhooks.providers import signing

PUBLIC_KEY = signing.ed25519_public(signing.SEED)
SIGNATURE = b"\1" * 63 + b"\0"
HEADERS = {
    "standard": {
        "webhook-id": "1",
        "webhook-timestamp": str(int(signing.NOW.timestamp())),
        "webhook-signature": " ".join(["v1a," + base64.b64encode(SIGNATURE).decode()] * 8),
    },
    "discord": {
        "x-signature-timestamp": str(int(signing.NOW.timestamp())),
        "x-signature-ed25519": SIGNATURE.hex(),
    },
}
PUBLIC = "whpk_" + base64.b64encode(PUBLIC_KEY).decode()
SECRETS: Mapping[str, Mapping[str, Mapping[str, str]]] = {
    "standard": {"public": {"a": PUBLIC}, "mac": {"a": "whsec_c2VjcmV0"}, "none": {}},
    "discord": {"public": {"a": PUBLIC_KEY.hex()}, "none": {}},
}


def seconds_of_refusal(index: SourceIndex, kind: str, name: str) -> float:
    """The CPU time of twenty refusals, of the quickest of seven rounds."""
    sources, request = index.find(kind, name), Signed(HEADERS[kind], b"{}")
    assert len(sources) == (name != "missing")
    found = []
    for _ in range(7):
        began = time.process_time()
        for _ in range(20):
            assert not examine(index, kind, sources, request, signing.NOW).verdict.accepted
        found.append(time.process_time() - began)
    return min(found)


@pytest.mark.parametrize("kind", SECRETS)
def test_a_refusal_takes_the_same_time_with_public_keys_macs_and_without_a_source(kind: str):
    """Guard: verifying with a public key takes many times as long as computing a MAC."""
    sources = [
        IndexedSource(number, 1, name, kind, PROVIDERS[kind], secrets)
        for number, (name, secrets) in enumerate(SECRETS[kind].items())
    ]
    index = SourceIndex(tuple(sources), {})
    known = seconds_of_refusal(index, kind, "public")
    for name in ("missing", *SECRETS[kind]):
        assert 0.7 < seconds_of_refusal(index, kind, name) / known < 1.4, name
