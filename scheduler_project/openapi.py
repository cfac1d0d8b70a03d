"""Prints the OpenAPI document of the API; `make openapi` writes docs/reference/openapi.json."""

import json
import os
import sys

import django

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "scheduler_project.settings")
django.setup()

from agents_app.conf import ROOT  # noqa: E402
from gateway_app.api import API  # noqa: E402

DOCUMENT = ROOT / "docs" / "reference" / "openapi.json"
# Contains the port, which each installation chooses: the document has the default.
SESSION_COOKIE = "drover_session_8080"


def openapi_text() -> str:
    """With sorted keys, so that a change of the API changes only its own lines."""
    document = API.get_openapi_schema()
    document["components"]["securitySchemes"]["AdminSession"]["name"] = SESSION_COOKIE
    return json.dumps(document, indent=2, sort_keys=True, ensure_ascii=False) + "\n"


if __name__ == "__main__":
    sys.stdout.write(openapi_text())
