"""The Authorization header for GitHub: a token, or a token of a GitHub App that is renewed."""

import base64
import json
import threading
from collections.abc import Mapping
from datetime import datetime, timedelta

from cryptography.exceptions import UnsupportedAlgorithm
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import padding, rsa

from agents_app.work_sources.kinds.api import WorkSourceError
from agents_app.work_sources.kinds.contract import SourceAccess

APP_FIELDS = ("app_id", "installation_id", "private_key")
# GitHub accepts at most ten minutes; a minute less on each side, because clocks differ.
ISSUED_BEFORE, VALID_FOR = timedelta(seconds=60), timedelta(minutes=8)
RENEW_BEFORE = timedelta(minutes=5)

_lock = threading.Lock()
_tokens: dict[tuple[str, str, str], tuple[str, datetime]] = {}


def authorization(url: str, access: SourceAccess) -> str:
    secret = access.secret
    if "private_key" in secret:
        return f"Bearer {_installation_token(url, access)}"
    if not secret.get("value"):
        raise WorkSourceError("no token: set the credential that `auth` of the work source names")
    return f"Bearer {secret['value']}"


def _installation_token(url: str, access: SourceAccess) -> str:
    key = (url, access.secret["app_id"], access.secret["installation_id"])
    with _lock:
        token, expires_at = _tokens.get(key, ("", access.now()))
        if not token or expires_at - access.now() < RENEW_BEFORE:
            token, expires_at = _request_token(url, access)
            _tokens[key] = token, expires_at
        return token


def _request_token(url: str, access: SourceAccess) -> tuple[str, datetime]:
    path = f"/app/installations/{int(access.secret['installation_id'])}/access_tokens"
    headers = {
        "Accept": "application/vnd.github+json",
        "Authorization": f"Bearer {app_token(access.secret, access.now())}",
    }
    reply = access.send("POST", f"{url}{path}", headers, b"{}")
    try:
        data = json.loads(reply.body)
        return data["token"], datetime.fromisoformat(data["expires_at"])
    except (ValueError, KeyError, TypeError):
        raise WorkSourceError(
            f"GitHub gave no token for the installation of the app: status {reply.status}; check "
            "app_id, installation_id and private_key of the credential"
        ) from None


def app_token(secret: Mapping[str, str], now: datetime) -> str:
    """A JSON Web Token that identifies the app, signed with its private key."""
    try:
        key = serialization.load_pem_private_key(secret["private_key"].encode(), None)
    except (ValueError, TypeError, UnsupportedAlgorithm):
        key = None
    if not isinstance(key, rsa.RSAPrivateKey):
        raise WorkSourceError("the private_key of the GitHub App is not an RSA key in PEM format")
    claims = {
        "iat": int((now - ISSUED_BEFORE).timestamp()),
        "exp": int((now + VALID_FOR).timestamp()),
        "iss": secret["app_id"],
    }
    signed = b".".join((_encoded({"alg": "RS256", "typ": "JWT"}), _encoded(claims)))
    signature = key.sign(signed, padding.PKCS1v15(), hashes.SHA256())
    return b".".join((signed, _base64(signature))).decode()


def _encoded(value: Mapping[str, object]) -> bytes:
    return _base64(json.dumps(value, separators=(",", ":")).encode())


def _base64(data: bytes) -> bytes:
    return base64.urlsafe_b64encode(data).rstrip(b"=")
