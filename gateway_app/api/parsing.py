"""The JSON parser of the API: duplicate keys and NaN are errors."""

from typing import Any

from django.http import HttpRequest
from ninja.parser import Parser

from gateway_app.asgi import strict_json


class StrictParser(Parser):
    def parse_body(self, request: HttpRequest) -> Any:
        return strict_json(request.body.decode("utf-8"))
