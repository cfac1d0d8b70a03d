"""A refusal does the same work for each source of a provider, and for one that does not exist."""

import base64
import hmac
from collections import Counter
from collections.abc import Callable, Mapping
from typing import Any

import pytest

from agents_app.webhooks import IndexedSource, SourceIndex
from agents_app.webhooks.providers import PROVIDERS, Signed, ed25519
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


class Work:
    """Counts the verifications with public keys and the computed MACs."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.done: Counter[str] = Counter()
        for module, name in ((ed25519, "verify"), (hmac, "new")):
            monkeypatch.setattr(module, name, self._counting(getattr(module, name)))

    def _counting(self, function: Callable[..., Any]) -> Callable[..., Any]:
        def call(*arguments: Any) -> Any:
            self.done[function.__name__] += 1
            return function(*arguments)

        return call

    def of_refusal(self, index: SourceIndex, kind: str, name: str) -> Counter[str]:
        self.done.clear()
        sources = index.find(kind, name)
        assert len(sources) == (name != "missing")
        signed = Signed(HEADERS[kind], b"{}")
        assert not examine(index, kind, sources, signed, signing.NOW).verdict.accepted
        return self.done.copy()


@pytest.mark.parametrize("kind", SECRETS)
def test_a_refusal_does_the_same_work_with_public_keys_macs_and_without_a_source(
    kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Guard: verifying with a public key takes many times as long as computing a MAC."""
    sources = [
        IndexedSource(number, 1, name, kind, PROVIDERS[kind], secrets)
        for number, (name, secrets) in enumerate(SECRETS[kind].items())
    ]
    index, work = SourceIndex(tuple(sources), {}), Work(monkeypatch)
    known = work.of_refusal(index, kind, "public")
    assert known["verify"] > 0
    for name in ("missing", *SECRETS[kind]):
        assert work.of_refusal(index, kind, name) == known, name
