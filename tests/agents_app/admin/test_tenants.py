"""Every list of rows that belong to tenants can be filtered by tenant."""

import re
from pathlib import Path

import pytest
from django.contrib import admin
from django.test import Client
from django.urls import reverse

from agents_app.admin.filters import TenantFilter
from agents_app.models import RuleBook, RuleState, RunEvent, Tenant
from tests.agents_app.admin.visitors import fill
from tests.agents_app.fleet import NOON, Fleet

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
