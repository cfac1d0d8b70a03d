"""No address of the admin is a 500, whatever its query says: every page of the site is walked.

The pages and the names of their fields and filters are asked of the admin itself.
"""

from collections.abc import Iterator
from typing import Any
from urllib.parse import quote

import pytest
from django.apps import apps
from django.contrib import admin
from django.test import Client
from django.urls import URLPattern, reverse

import scheduler_project.urls  # noqa: F401  # which finds the pages
from tests.agents_app.admin.test_rights import patterns
from tests.agents_app.admin.test_rights import whole as whole
from tests.agents_app.fleet import Fleet

HOSTILE = {"quote": "x'"}
# Names that Django, Unfold and the pages of Drover read.
SPECIAL = (
    *("q", "p", "o", "e", "all", "_popup", "_changelist_filters", "_facets"),
    *("before", "after", "hours", "rows", "at", "from", "day", "week", "month", "source", "body"),
    *("app_label", "model_name", "field_name", "term", "page"),
)
# Not pages of a table; the first one logs the user out.
NOT_WALKED = {"logout", "jsi18n", "app_list"}
# Django's own, which read no query.
WITHOUT_QUERY = ("_history", "_delete", "_password_change")


@pytest.fixture
def client(whole: Fleet, boss: Client) -> Client:
    boss.raise_request_exception = False
    return boss


def page_of(pattern: URLPattern) -> Any:
    return next((p for m, p in admin.site._registry.items() if _is_of(pattern, m)), None)


def fields_of(pattern: URLPattern) -> list[str]:
    """The fields of the page's table, and the names that pages read."""
    page = page_of(pattern)
    return [*(field.name for field in page.opts.get_fields()), *SPECIAL] if page else list(SPECIAL)


def filters_of(pattern: URLPattern) -> list[str]:
    """The parameters of the filters of a list."""
    page = page_of(pattern)
    named = [one[0] if isinstance(one, tuple) else one for one in page.list_filter]
    fields = [name for name in named if isinstance(name, str)]
    own = [one.parameter_name for one in named if not isinstance(one, str)]
    relations = {f.name for f in page.opts.get_fields() if f.is_relation}
    return [*(f"{n}__id__exact" if n in relations else f"{n}__exact" for n in fields), *own]


def _is_of(pattern: URLPattern, model: Any) -> bool:
    start = f"{model._meta.app_label}_{model._meta.model_name}_"
    return (pattern.name or "").startswith(start)


def address_of(pattern: URLPattern, key: str) -> str:
    return reverse(f"admin:{pattern.name}", args=[key for _ in pattern.pattern.converters])


def walked() -> list[URLPattern]:
    found = [p for p in patterns(admin.site.get_urls()) if p.name and p.name not in NOT_WALKED]
    assert len(found) > 150
    return found


def first_key(pattern: URLPattern) -> str:
    for model in apps.get_models():
        if _is_of(pattern, model) and (row := model._default_manager.order_by("pk").first()):
            return str(row.pk)
    return "1"


def addresses(text: str) -> Iterator[str]:
    for pattern in walked():
        if (pattern.name or "").endswith(WITHOUT_QUERY):
            continue
        converters = pattern.pattern.converters
        kinds = {type(one).__name__ for one in converters.values()}
        if kinds & {"SlugConverter", "IntConverter"} and len(converters) > 1:
            continue  # verbs: they answer to POST only
        page = address_of(pattern, first_key(pattern))
        yield f"{page}?{'&'.join(f'{name}={quote(text)}' for name in fields_of(pattern))}"
        # Each by itself: the first one that is refused ends the request.
        alone = ["_to_field"] if (pattern.name or "").endswith("_add") else []
        if (pattern.name or "").endswith("_changelist"):
            alone = filters_of(pattern)
        yield from (f"{page}?{name}={quote(text)}" for name in alone)


@pytest.mark.parametrize("text", HOSTILE.values(), ids=HOSTILE)
def test_no_query_is_a_500(client: Client, text: str):
    failed = [url for url in addresses(text) if client.get(url).status_code >= 500]
    assert failed == []


def test_the_page_that_adds_a_schedule_ignores_an_agent_that_cannot_exist(client: Client):
    page = client.get("/admin/agents_app/schedule/add/?agent=x'", follow=True)
    assert page.status_code == 200
    assert "agent" not in page.context["adminform"].form.initial


def test_the_page_that_adds_a_schedule_takes_the_agent_of_the_address(client: Client, whole: Fleet):
    agent = whole.tenant.agents.first()
    page = client.get(f"/admin/schedules/add/?agent={agent.pk}&text=every+monday")
    assert page.context["adminform"].form.initial["agent"] == str(agent.pk)
    assert page.context["adminform"].form.initial["text"] == "every monday"


@pytest.mark.parametrize("key", HOSTILE.values(), ids=HOSTILE)
def test_no_key_is_a_500(client: Client, key: str):
    for pattern in walked():
        kinds = [type(one).__name__ for one in pattern.pattern.converters.values()]
        if kinds == ["PathConverter"] and (pattern.name or "").endswith("_change"):
            status = client.get(address_of(pattern, key)).status_code
            assert status < 500, (pattern.name, status)
