"""A client of the API with one token."""

import json
from dataclasses import dataclass
from typing import Any

from django.http import HttpResponse
from django.test import Client

from agents_app.accounts.tokens import create_token
from agents_app.models import Tenant
from tests.agents_app.fleet import NOON

JSON = "application/json"
HOUR = 3600


@dataclass(frozen=True)
class Reply:
    status: int
    json: Any
    response: HttpResponse

    @property
    def error(self) -> Any:
        """The error; checks the form that all errors have."""
        assert list(self.json) == ["error"], self.json
        error = self.json["error"]
        assert isinstance(error["code"], str) and isinstance(error["message"], str)
        return error

    @property
    def message(self) -> str:
        return str(self.error["message"])


class Api:
    def __init__(self, token: str = "", client: Client | None = None) -> None:
        self.client = client or Client()
        self.headers = {"Authorization": f"Bearer {token}"} if token else {}

    def get(self, path: str, **query: Any) -> Reply:
        return _reply(self.client.get(f"/v1{path}", query, headers=self.headers))

    def post(self, path: str, body: Any = None, **headers: str) -> Reply:
        return self.send("POST", path, body, **headers)

    def patch(self, path: str, body: Any) -> Reply:
        return self.send("PATCH", path, body)

    def delete(self, path: str) -> Reply:
        return self.send("DELETE", path)

    def send(self, method: str, path: str, body: Any = None, **headers: str) -> Reply:
        """Sends `body` as JSON, or unchanged if it is bytes."""
        data = body if isinstance(body, bytes) else b"" if body is None else json.dumps(body)
        named = {name.replace("_", "-"): value for name, value in headers.items()}
        sent: Any = self.client.generic(
            method, f"/v1{path}", data, content_type=JSON, headers=self.headers | named
        )
        return _reply(sent)


def _reply(response: Any) -> Reply:
    is_json = response.headers.get("Content-Type", "").startswith(JSON)
    return Reply(response.status_code, response.json() if is_json else None, response)


def token_of(tenant: Tenant, scope: str = "operate", name: str = "ci") -> str:
    return create_token(tenant, name, scope, "the test", NOON).secret


def api_of(tenant: Tenant, scope: str = "operate", name: str = "ci") -> Api:
    return Api(token_of(tenant, scope, name))
