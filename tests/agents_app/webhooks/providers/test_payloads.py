"""How a body is parsed: by its first character, then by its Content-Type."""

import pytest

from agents_app.webhooks.providers.decide import payload_of
from agents_app.webhooks.providers.reading import Unparseable

FORM = {"content-type": "application/x-www-form-urlencoded"}


@pytest.mark.parametrize("headers", [{}, {"content-type": "application/json"}, FORM])
def test_json_is_parsed_with_any_content_type(headers):
    assert payload_of(headers, b' {"action": "opened"}') == {"action": "opened"}


def test_a_form_has_the_json_in_the_field_payload():
    assert payload_of(FORM, b"payload=%7B%22action%22%3A%22opened%22%7D") == {"action": "opened"}


@pytest.mark.parametrize("body", [b"", b"other=1", b"payload=1&payload=2", b"\xff"])
def test_a_form_without_the_field_payload_is_unparseable(body):
    assert isinstance(payload_of(FORM, body), Unparseable)
