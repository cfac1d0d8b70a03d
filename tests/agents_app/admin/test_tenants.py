"""Every list of rows that belong to tenants can be filtered by tenant."""

import re
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
import time_machine
from django.apps import apps
from django.contrib import admin
from django.test import Client
from django.urls import reverse

from agents_app.admin.filters import TenantFilter
from agents_app.models import RuleBook, RuleState, Run, RunEvent, Tenant
from tests.agents_app.admin.visitors import fill
from tests.agents_app.fleet import NOON, Fleet, at

RULES = reverse("admin:agents_app_rulestate_changelist")
OWNED = sorted(
    model.__name__.lower()
    for model in admin.site._registry
    if any(field.name == "tenant" for field in model._meta.fields)
)


def listed(client: Client, noun: str, **query: object) -> str:
    address = reverse(f"admin:agents_app_{noun}_changelist")
    response = client.get(address, query)
    assert response.status_code == 200, (address, query)
    return response.content.decode()


@pytest.fixture
def others(fleet: Fleet) -> Fleet:
    return Fleet(Tenant.objects.create(name="acme", project="/srv/fleets/acme"))


@pytest.mark.parametrize("noun", sorted(set(OWNED) - {"rulestate"}))
def test_a_list_has_a_filter_by_tenant_if_there_are_several(
    noun: str, boss: Client, fleet: Fleet, others: Fleet
):
    page = listed(boss, noun, tenant__id__exact=others.tenant.pk)
    assert f"tenant__id__exact={fleet.tenant.pk}" in page


def test_a_list_of_a_single_tenant_has_no_filter_by_tenant(boss: Client, fleet: Fleet):
    assert "tenant__id__exact" not in listed(boss, "run")


def columns(client: Client, noun: str) -> list[str]:
    page = client.get(reverse(f"admin:agents_app_{noun}_changelist"))
    return [getattr(each, "__name__", each) for each in page.context["cl"].list_display]


@pytest.mark.parametrize("noun", sorted(set(OWNED) - {"rulestate"}))
def test_a_list_has_one_column_with_the_tenant_if_there_are_several(
    noun: str, boss: Client, fleet: Fleet
):
    fill(fleet)
    alone = columns(boss, noun)
    Tenant.objects.create(name="acme")
    assert columns(boss, noun) == [*alone, *(["tenant"] if "tenant" not in alone else [])]


def test_a_list_of_a_single_tenant_has_no_column_with_the_tenant(boss: Client, fleet: Fleet):
    assert "tenant" not in columns(boss, "agent")


def test_agents_of_two_tenants_with_one_name_are_told_apart(
    boss: Client, fleet: Fleet, others: Fleet
):
    fleet.agent("reporter")
    others.agent("reporter")
    rows = re.findall(r"<tr.*?</tr>", listed(boss, "agent", project="all"), re.DOTALL)
    named = [text_in(row) for row in rows if "reporter" in row]
    assert sorted("acme" in row.split() for row in named) == [False, True]


def text_in(row: str) -> str:
    return re.sub(r"<[^>]*>", " ", row)


def test_there_are_lists_with_a_tenant():
    assert {"agent", "run", "schedule", "credential", "runevent", "workitem"} <= set(OWNED)


def test_the_filter_leaves_out_rows_of_other_tenants(boss: Client, fleet: Fleet, others: Fleet):
    fill(fleet)
    others.agent("forge-of-acme")
    fleet.agent("forge-of-ours")
    page = listed(boss, "agent", tenant__id__exact=others.tenant.pk)
    assert "forge-of-acme" in page and "forge-of-ours" not in page
    runs = reverse("admin:agents_app_run_changelist")
    for each, count in ((fleet, 2), (others, 0)):
        response = boss.get(runs, {"tenant__id__exact": each.tenant.pk})
        assert response.context["cl"].result_count == count


def test_agents_of_the_same_name_are_told_apart(boss: Client, fleet: Fleet, others: Fleet):
    for each in (fleet, others):
        each.agent("forge")
    assert "forge (acme)" in listed(boss, "run")


def test_the_page_of_a_tenant_names_its_project(boss: Client, fleet: Fleet, others: Fleet):
    assert "/srv/fleets/acme" in listed(boss, "tenant")


def test_the_overview_says_whose_agents_and_errors_it_shows(
    boss: Client, fleet: Fleet, others: Fleet
):
    others.agent("forge")
    Tenant.objects.update(definition_errors=["config.toml: no"])
    page = boss.get(reverse("admin:index")).content.decode()
    assert '<span class="dv-below">acme</span>' in page
    assert "acme: config.toml: no" in page and "default: config.toml" not in page


def test_the_timeline_shows_the_runs_of_one_tenant(boss: Client, fleet: Fleet, others: Fleet):
    now = datetime.now(UTC)
    for each, name in ((fleet, "ours"), (others, "theirs")):
        agent = each.agent(name, scale=2)
        each.finish(each.start(each.enqueue(agent, now), now), now=now)
        each.start(each.enqueue(agent, now), now)

    def activity(query: dict[str, object]) -> dict[str, Any]:
        found: dict[str, Any] = boss.get(reverse("admin:index"), query).context["activity"]
        return found

    assert [lane.name for lane in activity({})["lanes"]] == ["ours", "theirs"]
    chosen = activity({"tenant": others.tenant.pk})
    assert [(lane.name, lane.runs) for lane in chosen["lanes"]] == [("theirs", 2)]
    assert "Queued work items" not in {chart.title for chart in chosen["charts"]}
    assert len(activity({"tenant": 999})["lanes"]) == len(activity({"tenant": "x"})["lanes"]) == 2
    page = boss.get(reverse("admin:index"), {"tenant": others.tenant.pk}).content.decode()
    assert f'href="?hours=1&amp;tenant={others.tenant.pk}" aria-current="true">acme' in page
    assert f'href="?hours=6&amp;tenant={others.tenant.pk}"' in page


@time_machine.travel(NOON, tick=False)
def test_the_calendar_shows_the_fires_of_one_tenant(boss: Client, fleet: Fleet, others: Fleet):
    for each, name in ((fleet, "ours"), (others, "theirs")):
        each.schedule(each.agent(name), "0 9 * * *", next_fire_at=at(hours=21))
    query = {"tenant": others.tenant.pk, "week": 1}
    response = boss.get("/admin/schedules/calendar/", query)
    names = {line.schedule.agent.name for day in response.context["columns"] for line in day.lines}
    assert names == {"theirs"} == {agent.name for agent in response.context["agents"]}
    page = response.content.decode()
    assert f'<option value="{others.tenant.pk}" selected>acme' in page
    assert f'href="?week=2&amp;tenant={others.tenant.pk}&amp;agent="' in page
    others.tenant.agents.all().delete()
    assert "for this tenant" in boss.get("/admin/schedules/calendar/", query).content.decode()


def test_pages_of_a_single_tenant_have_no_filter_by_tenant(boss: Client, fleet: Fleet):
    fill(fleet)
    for address in (reverse("admin:index"), "/admin/schedules/calendar/"):
        assert "All tenants" not in boss.get(address).content.decode()


def test_the_path_to_a_page_has_the_name_of_the_tenant_as_it_is(
    boss: Client, fleet: Fleet, others: Fleet
):
    page = boss.get(reverse("admin:agents_app_tenant_change", args=[others.tenant.pk]))
    links = re.findall(r"<a href[^>]*truncate[^>]*>(.*?)</a>", page.content.decode(), re.DOTALL)
    assert "acme" in {link.strip() for link in links}
    fill(fleet)
    run = Run.objects.first()
    assert run is not None
    page = boss.get(reverse("admin:agents_app_run_change", args=[run.pk]))
    assert f"Run {run.pk}\n" in page.content.decode()


def test_an_empty_list_shows_code_without_backticks(boss: Client, fleet: Fleet):
    page = listed(boss, "worksource")
    assert "<code>work_source</code>" in page and "`work_source`" not in page


@pytest.mark.parametrize(
    ("noun", "title"),
    [
        ("periodictask", "No periodic tasks yet"),
        ("intervalschedule", "No intervals yet"),
        ("crontabschedule", "No crontabs yet"),
        ("solarschedule", "No solar events yet"),
        ("clockedschedule", "No clocked times yet"),
    ],
)
def test_an_empty_list_of_system_duties_says_what_it_would_contain(
    boss: Client, fleet: Fleet, noun: str, title: str
):
    model = apps.get_model("django_celery_beat", noun)
    model.objects.all().delete()
    page = boss.get(reverse(f"admin:django_celery_beat_{noun}_changelist")).content.decode()
    assert f"<h2>{title}</h2>" in page and "yielded" not in page


def test_each_tenant_has_a_page_of_its_rules(
    boss: Client, fleet: Fleet, others: Fleet, tmp_path: Path
):
    Tenant.objects.filter(pk=others.tenant.pk).update(project=str(tmp_path))
    for each, name in ((fleet, "ours"), (others, "theirs")):
        text = f"[{name}] every 1m => pause forge"
        RuleState.objects.create(tenant=each.tenant, name=name, text=text, line=1, next_due_at=NOON)
        RuleBook.objects.create(tenant=each.tenant)
    own, other = (boss.get(RULES, query).content.decode() for query in ({}, {"tenant": "acme"}))
    assert ("[ours]" in own or ">ours<" in own) and ">theirs<" not in own
    assert ">theirs<" in other and ">ours<" not in other
    assert f'href="{RULES}?tenant=acme"' in own
    assert boss.get(RULES, {"tenant": "missing"}).status_code == 404
    silence = reverse("admin:agents_app_rulestate_file_act", args=["silence"])
    assert f"{silence}?tenant=acme" in other
    assert boss.post(f"{silence}?tenant=acme").headers["Location"] == f"{RULES}?tenant=acme"
    assert RunEvent.objects.get(name="rules.silenced").tenant == others.tenant


def test_the_filter_is_the_same_everywhere():
    for model, pages in admin.site._registry.items():
        if model.__name__.lower() in OWNED:
            filters = pages.get_list_filter(None)  # type: ignore[arg-type]
            assert ("tenant", TenantFilter) in filters, model
