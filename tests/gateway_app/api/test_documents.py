"""The OpenAPI document and the page /v1/docs, which loads nothing from other hosts."""

import re
from typing import Any

import pytest
from django.test import Client

from agents_app.signals import SIGNALS
from gateway_app.api.app import API
from scheduler_project.openapi import DOCUMENT, openapi_text


@pytest.fixture
def document(client: Client, db: None) -> Any:
    return client.get("/v1/openapi.json").json()


def operations(document: Any) -> list[tuple[str, str, Any]]:
    return [
        (method.upper(), path, operation)
        for path, methods in document["paths"].items()
        for method, operation in methods.items()
    ]


def test_the_document_is_served_without_a_token(document: Any):
    assert document["openapi"].startswith("3.1")
    assert document["info"]["title"] == "Drover"
    assert len(operations(document)) > 35


def test_every_operation_needs_authentication_and_has_a_unique_name(document: Any):
    names = [operation["operationId"] for _, _, operation in operations(document)]
    assert len(names) == len(set(names))
    schemes = document["components"]["securitySchemes"]
    assert {scheme["type"] for scheme in schemes.values()} == {"http", "apiKey"}
    for _, path, operation in operations(document):
        used = {name for way in operation["security"] for name in way}
        of_runs = path.startswith("/v1/signals/")
        assert used == ({"RunToken"} if of_runs else set(schemes) - {"RunToken"}), path


def test_the_document_has_every_signal(document: Any):
    paths = {path.rpartition("/")[2] for path in document["paths"] if "/signals/" in path}
    assert paths == set(SIGNALS)


def test_every_operation_declares_the_common_error_form(document: Any):
    for method, path, operation in operations(document):
        for status in ("400", "401", "403", "404", "409", "413", "429", "503"):
            content = operation["responses"][status]["content"]
            assert content["application/json"]["schema"]["$ref"].endswith("/Problem"), (
                method,
                path,
            )


def test_every_body_forbids_unknown_fields(document: Any):
    for method, path, operation in operations(document):
        body = operation.get("requestBody")
        if body is None:
            continue
        schema = body["content"]["application/json"]["schema"]
        (inner,) = schema.get("allOf", [schema])
        name = inner["$ref"].rpartition("/")[2]
        assert document["components"]["schemas"][name]["additionalProperties"] is False, (
            method,
            path,
        )


def test_the_docs_page_loads_files_of_this_gateway_only(client: Client, db: None):
    page = client.get("/v1/docs")
    assert page.status_code == 200
    text = page.content.decode()
    assert "//" not in re.sub(r"<!DOCTYPE.*?>", "", text).replace("</", "")
    loaded = re.findall(r'(?:src|href)="(docs/[^"]+)"', text)
    assert len(loaded) == 3
    for name in loaded:
        response = client.get(f"/v1/{name}")
        assert response.status_code == 200
        assert len(response.content) > 500
        assert response["Content-Type"].startswith(("text/css", "text/javascript"))


@pytest.mark.parametrize("name", ["redoc.standalone.js", "..", "%2e%2e%2fapps.py", "x"])
def test_other_files_of_the_package_are_not_served(client: Client, db: None, name: str):
    assert client.get(f"/v1/docs/{name}").status_code == 404


def test_the_committed_document_matches_the_code():
    assert DOCUMENT.read_text() == openapi_text(), "run `make openapi` and commit the document"


def test_the_served_document_matches_the_code(document: Any):
    assert set(API.get_openapi_schema()["paths"]) == set(document["paths"])
