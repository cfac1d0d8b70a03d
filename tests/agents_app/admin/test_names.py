"""Sidebar, page title, heading and address of a page have one name, the name in NAMES."""

import html
import re

import pytest
from django.test import Client
from django.utils.text import slugify
from django.utils.timezone import localtime

from gateway_app.api import API
from tests.agents_app.admin.visitors import fill
from tests.agents_app.fleet import Fleet

# In the order of the sidebar.
NAMES = {
    "Overview": "/admin/",
    "Agents": "/admin/agents/",
    "Schedules": "/admin/schedules/",
    "Calendar": "/admin/schedules/calendar/",
    "Rules": "/admin/rules/",
    "Queue": "/admin/queue/",
    "Runs": "/admin/runs/",
    "Credentials": "/admin/credentials/",
    "Calls": "/admin/calls/",
    "Messages": "/admin/messages/",
    "Locks": "/admin/locks/",
    "Lock waits": "/admin/lock-waits/",
    "Deliveries": "/admin/deliveries/",
    "Webhook sources": "/admin/webhook-sources/",
    "Work sources": "/admin/work-sources/",
    "Claims": "/admin/claims/",
    "Notifications": "/admin/notifications/",
    "Firings": "/admin/firings/",
    "Events": "/admin/events/",
    "Usage": "/admin/usage/",
    "Heartbeats": "/admin/heartbeats/",
    "Doctor": "/admin/doctor/",
    "Workers": "/admin/workers/",
    "Machines": "/admin/machines/",
    "Scheduler": "/admin/scheduler/",
    "Tenants": "/admin/tenants/",
    "Users": "/admin/users/",
    "Groups": "/admin/groups/",
    "API tokens": "/admin/api-tokens/",
    "Failed logins": "/admin/failed-logins/",
}
# Celery's own tables: one line in the sidebar, and a tab for each on their pages.
CELERY = {
    "Periodic tasks": "/admin/periodic-tasks/",
    "Crontabs": "/admin/crontabs/",
    "Intervals": "/admin/intervals/",
    "Solar events": "/admin/solar-events/",
    "Clocked": "/admin/clocked/",
}
# Pages without a line in the sidebar.
OTHERS = {
    **CELERY,
    "Webhook secrets": "/admin/webhook-secrets/",
    "Test a payload": "/admin/deliveries/test/",
}
# Resources of the API without a page.
API_ONLY = {"tokens", "project", "signals", "audit"}


def text_of(page: str, element: str) -> str:
    found = re.search(rf"<{element}[ >].*?</{element}>", page, re.DOTALL)
    assert found, element
    text = re.sub(r"<span class=\"material-symbols-outlined.*?</span>", " > ", found[0])
    return " ".join(html.unescape(re.sub(r"<[^>]*>", " ", text)).split())


def page_at(client: Client, address: str) -> str:
    response = client.get(address)
    assert response.status_code == 200, address
    return response.content.decode()


def test_the_sidebar_has_the_names_and_addresses(boss: Client, fleet: Fleet):
    groups = boss.get("/admin/").context["sidebar_navigation"]
    items = {str(item["title"]): str(item["link"]) for group in groups for item in group["items"]}
    items.pop("Flower", None)
    assert items.pop("Celery") == CELERY["Periodic tasks"]
    assert list(items.items()) == list(NAMES.items())


@pytest.mark.parametrize("address", CELERY.values())
def test_each_page_of_celery_has_tabs_to_the_others_and_marks_the_entry_of_the_sidebar(
    boss: Client, fleet: Fleet, address: str
):
    response = boss.get(address)
    for name, other in CELERY.items():
        assert re.search(rf'href="{other}"[^>]*>\s*{name}', response.content.decode()), name
    items = [item for group in response.context["sidebar_navigation"] for item in group["items"]]
    assert [str(item["title"]) for item in items if item["active"]] == ["Celery"]


@pytest.mark.parametrize(("name", "address"), {**NAMES, **OTHERS}.items())
def test_title_and_heading_of_a_page_are_its_name(
    boss: Client, fleet: Fleet, name: str, address: str
):
    page = page_at(boss, address)
    assert text_of(page, "title") == f"{name} | Drover"
    assert text_of(page, "h1").split(" > ")[-1] == name


@pytest.mark.parametrize("name", ["Agents", "Runs", "Queue", "Firings", "Workers", "Events"])
def test_the_page_of_a_row_has_the_name_of_its_list(boss: Client, fleet: Fleet, name: str):
    fill(fleet)
    row = re.search(rf'"({NAMES[name]}\d+/change/)', page_at(boss, NAMES[name]))
    assert row
    page = page_at(boss, row[1])
    own, of_list, site = text_of(page, "title").split(" | ")
    assert (of_list, site) == (name, "Drover")
    assert text_of(page, "h1") == f"Drover > {name} > {own}"


@pytest.mark.parametrize("name", ["Agents", "Users", "Crontabs"])
def test_the_path_to_a_page_starts_at_the_overview(boss: Client, fleet: Fleet, name: str):
    """Also to pages of Django and Celery."""
    page = page_at(boss, {**NAMES, **CELERY}[name])
    assert text_of(page, "h1") == f"Drover > {name}"
    assert re.search(r'<h1.*?<a href="/admin/"', page, re.DOTALL)


def test_times_of_rows_are_written_as_iso_dates(boss: Client, fleet: Fleet):
    created = localtime(fleet.tenant.created_at)
    assert f"{created:%Y-%m-%d %H:%M:%S}" in page_at(boss, NAMES["Tenants"])


def test_the_page_that_adds_a_row_says_so(boss: Client, fleet: Fleet):
    page = page_at(boss, "/admin/webhook-sources/add/")
    assert text_of(page, "title") == "Add webhook source | Webhook sources | Drover"


def test_resources_of_the_api_have_the_names_of_the_pages():
    resources = {path.split("/")[2] for path in API.get_openapi_schema()["paths"]}
    assert resources - API_ONLY <= {slugify(name) for name in NAMES}


def test_addresses_of_version_0_1_0_lead_to_the_pages(boss: Client, fleet: Fleet):
    response = boss.get("/admin/agents_app/workitem/?state__exact=queued")
    assert (response.status_code, response["Location"]) == (
        301,
        "/admin/queue/?state__exact=queued",
    )
    assert boss.get("/admin/agents_app/nothing/").status_code == 404
