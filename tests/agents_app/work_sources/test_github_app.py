"""The token of a GitHub App: signed with its key, asked for once, renewed before it ends."""

import base64
import json
from datetime import UTC, datetime, timedelta

import pytest
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import padding, rsa

from agents_app.work_sources.kinds import HttpReply, SourceAccess, WorkSourceError, github_app
from agents_app.work_sources.kinds.github_app import authorization

NOW = datetime(2026, 1, 1, tzinfo=UTC)
KEY = rsa.generate_private_key(65537, 2048)
PEM = KEY.private_bytes(
    serialization.Encoding.PEM,
    serialization.PrivateFormat.TraditionalOpenSSL,
    serialization.NoEncryption(),
).decode()


class Script:
    def __init__(self, status: int = 201) -> None:
        self.now = NOW
        self.status = status
        self.sent: list[tuple[str, str, str]] = []

    def send(self, method, url, headers, _body) -> HttpReply:
        self.sent.append((method, url, headers["Authorization"]))
        ends = (self.now + timedelta(hours=1)).isoformat()
        answer = {"token": f"token {len(self.sent)}", "expires_at": ends}
        body = answer if self.status == 201 else {"message": "no"}
        return HttpReply(self.status, {}, json.dumps(body).encode())

    def access(self, private_key: str = PEM) -> SourceAccess:
        secret = {"app_id": "17", "installation_id": "42", "private_key": private_key}
        return SourceAccess(send=self.send, now=lambda: self.now, secret=secret)


@pytest.fixture(autouse=True)
def _no_tokens():
    github_app._tokens.clear()


def test_the_app_asks_for_a_token_with_its_signature_and_keeps_it():
    script = Script()
    for _ in range(2):
        assert authorization("https://api.test", script.access()) == "Bearer token 1"
    ((method, url, sent),) = script.sent
    assert (method, url) == ("POST", "https://api.test/app/installations/42/access_tokens")
    signed, _, signature = sent.removeprefix("Bearer ").rpartition(".")
    KEY.public_key().verify(
        base64.urlsafe_b64decode(signature + "=="),
        signed.encode(),
        padding.PKCS1v15(),
        hashes.SHA256(),
    )
    claims = json.loads(base64.urlsafe_b64decode(signed.split(".")[1] + "=="))
    assert claims["iss"] == "17"
    assert claims["iat"] < NOW.timestamp() < claims["exp"] <= NOW.timestamp() + 600


def test_a_token_is_renewed_before_it_ends():
    script = Script()
    assert authorization("https://api.test", script.access()) == "Bearer token 1"
    script.now = NOW + timedelta(minutes=56)
    assert authorization("https://api.test", script.access()) == "Bearer token 2"


def test_a_refused_app_says_what_to_check():
    with pytest.raises(WorkSourceError, match="check app_id, installation_id and private_key"):
        authorization("https://api.test", Script(404).access())


def test_a_key_that_is_none_is_not_repeated_in_the_message():
    with pytest.raises(WorkSourceError, match="not an RSA key") as error:
        authorization("https://api.test", Script().access("not a key"))
    assert "not a key" not in str(error.value)
