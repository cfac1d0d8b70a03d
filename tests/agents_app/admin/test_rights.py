"""A user who may view sees every page and changes nothing; every action is recorded with its user.

The pages and verbs are asked of the admin itself, so a new one cannot be forgotten here.
"""

from typing import Any

import pytest
from django.apps import apps
from django.contrib import admin
from django.contrib.admin.models import LogEntry
from django.db.models import Model
from django.test import Client
from django.urls import URLPattern, URLResolver, reverse

from agents_app.accounts.tokens import create_token
from agents_app.admin.base import DroverAdmin, Verb
from agents_app.admin.rules import FILE_VERBS
from agents_app.models import (
    AgentCall,
    Delivery,
    LockWait,
    LoginFailure,
    Message,
    NotifyTarget,
    ResourceLock,
    RuleState,
    Run,
    RunEvent,
    Schedule,
    Usage,
    WebhookSecret,
    WebhookSource,
    WorkClaim,
    WorkSource,
)
from agents_app.secrets.credentials import set_credential
from agents_app.secrets.types import parse_name
from tests.agents_app.admin.test_verbs import url_of
from tests.agents_app.admin.visitors import fill
from tests.agents_app.fleet import NOON, Fleet, at

# Django's own: they have no rows, and are for people who manage people.
NOT_OURS = {"jsi18n", "view_on_site", "app_list", "login", "logout", "autocomplete"}
# Ours as well, but of no table, and so not among the addresses of the admin.
BESIDE = ("doctor", "doctor_findings")
LOOKING, REFUSED = {200}, {403, 405}
# What must have happened before there is a row that the verb fits.
FIRST = {
    ("tenant", "resume"): "pause",
    ("agent", "resume"): "pause",
    ("schedule", "resume"): "pause",
    ("schedule", "resume_now"): "pause",
    ("workitem", "restore"): "drop",
    ("webhooksource", "enable"): "disable",
}
VERBS = [
    (model._meta.model_name or "", verb)
    for model, page in admin.site._registry.items()
    if isinstance(page, DroverAdmin)
    for verb in page.verbs
]


@pytest.fixture
def whole(fleet: Fleet) -> Fleet:
    """Something that every page shows and every verb fits."""
    fill(fleet)
    agent = fleet.tenant.agents.get()
    source = WebhookSource.objects.create(
        **{"tenant": fleet.tenant, "name": "gh", "type": "github", "origin": "person"}
    )
    WebhookSecret.objects.create(tenant=fleet.tenant, source=source, name="main", created_at=NOON)
    Delivery.objects.create(
        **{"tenant": fleet.tenant, "source": source, "provider": "github", "delivery_id": "d-1"},
        **{"event": "issues", "outcome": "matched", "matched": 1, "received_at": NOON},
        **{"headers": '{"x-github-event": "issues"}', "decisions": "[]", "body": b"{}"},
    )
    ResourceLock.objects.create(
        **{"tenant": fleet.tenant, "uri": "file:///x", "holder": agent.name, "ttl_seconds": 60},
        **{"held_since": NOON, "expires_at": at(days=36_500)},
    )
    Message.objects.create(tenant=fleet.tenant, agent=agent, text="hello", created_at=NOON)
    set_credential(
        fleet.tenant, parse_name("own"), {"value": "a secret of some length"}, "ann", NOON
    )
    failing = fleet.agent("failing", scale=3)
    once = fleet.schedule(failing, "at 2026-03-02T12:00:00Z", name="once", one_shot=True)
    fleet.fire(once)
    fleet.finish(fleet.start(failing.work_items.get()), "failed")
    fleet.agent("gone", removed_at=NOON)
    _what_only_time_brings(fleet)
    return fleet


def _what_only_time_brings(fleet: Fleet) -> None:
    """Rows that people have no verbs for, but pages."""
    tenant, run, caller = fleet.tenant, Run.objects.earliest("pk"), Run.objects.latest("pk")
    RuleState.objects.create(
        **{"tenant": tenant, "name": "keep", "text": "[keep] every 1m => resume all"},
        **{"line": 1, "next_due_at": NOON},
    )
    create_token(tenant, "ci", "read", "ann", NOON)
    NotifyTarget.objects.create(tenant=tenant, url="https://example.com/hook")
    source = WorkSource.objects.create(tenant=tenant, type="github", name="o/r", fingerprint="x")
    WorkClaim.objects.create(
        **{"tenant": tenant, "source": source, "agent": run.agent, "item_id": "github-1"},
        **{"item_key": "x", "ready_at": NOON, "created_at": NOON},
    )
    LoginFailure.objects.create(user_name="eve", address="192.0.2.1", at=NOON)
    LockWait.objects.create(
        tenant=tenant, uri="file:///x", holder="other", since=NOON, asked_at=NOON
    )
    AgentCall.objects.create(
        **{"tenant": tenant, "caller_run": caller, "agent": run.agent, "work_item": run.work_item},
        **{"created_at": NOON, "deadline_at": NOON, "ended_at": NOON},
    )
    Usage.objects.create(tenant=tenant, agent=run.agent, day=NOON.date(), tokens=1)


# --- looking --------------------------------------------------------------------------------


def patterns(found: list[Any]) -> list[URLPattern]:
    nested_list = [patterns(p.url_patterns) if isinstance(p, URLResolver) else [p] for p in found]
    return [pattern for each in nested_list for pattern in each]


def address(pattern: URLPattern) -> str | None:
    """Of the first row where it needs one; None for what is not ours."""
    name = pattern.name or ""
    if not name or name in NOT_OURS or name.startswith(("auth_", "password_", "django_")):
        return None
    values: list[object] = []
    for parameter in pattern.pattern.converters:
        model = _model_of(name)
        if parameter == "verb_name":
            values.append(next((v.name for n, v in VERBS if n == model._meta.model_name), "none"))
        else:
            row = model._default_manager.order_by("pk").first()
            assert row is not None, f"{name}: there is no row that it could show"
            values.append(row.pk)
    return reverse(f"admin:{name}", args=values)


def _model_of(name: str) -> type[Model]:
    return apps.get_model("agents_app", name.removeprefix("agents_app_").split("_")[0])


def our_pages() -> list[str]:
    found = {address(pattern) for pattern in patterns(admin.site.get_urls())}
    return sorted({url for url in found if url} | {reverse(name) for name in BESIDE})


def everything() -> dict[str, list[tuple[Any, ...]]]:
    """All rows of all our tables."""
    models = apps.get_app_config("agents_app").get_models()
    return {m.__name__: list(m._default_manager.order_by("pk").values_list()) for m in models}


def test_a_user_who_may_view_sees_the_page_of_every_row_and_list(visitor: Client, whole: Fleet):
    seen = 0
    for url in our_pages():
        if "/act/" in url or "/file/" in url or url.endswith(("/add/", "/delete/")):
            continue
        # Django's own pages of what was done; that of an agent is ours.
        if url.endswith("/history/") and "/agent/" not in url:
            continue
        status = visitor.get(url).status_code
        assert status in LOOKING or (status == 405 and not url.endswith("/")), (url, status)
        seen += 1
    assert seen > 40


def test_a_user_who_may_only_view_is_refused_every_action(visitor: Client, whole: Fleet):
    before = everything()
    for url in our_pages():
        status = visitor.post(url, {"scale": "7", "name": "x", "text": "every day"}).status_code
        # What only shows something is shown; a redirect would mean that something was done.
        assert status in REFUSED | LOOKING, (url, status)
    assert everything() == before


@pytest.mark.parametrize(("noun", "verb"), VERBS, ids=[f"{n}-{v.name}" for n, v in VERBS])
def test_no_verb_works_for_a_read_only_user(visitor: Client, whole: Fleet, noun: str, verb: Verb):
    rows = list(apps.get_model("agents_app", noun)._default_manager.all())
    assert rows
    before = everything()
    for row in rows:
        assert visitor.post(url_of(row, verb.name)).status_code == 403
    chosen = {"action": f"{verb.name}_selected", "_selected_action": [row.pk for row in rows]}
    visitor.post(reverse(f"admin:agents_app_{noun}_changelist"), chosen | {"index": "0"})
    assert everything() == before


@pytest.mark.parametrize("verb", FILE_VERBS, ids=[verb.name for verb in FILE_VERBS])
def test_no_verb_on_all_rules_works_for_a_read_only_user(visitor: Client, whole: Fleet, verb: Verb):
    before = everything()
    url = reverse("admin:agents_app_rulestate_file_act", args=[verb.name])
    assert visitor.post(url).status_code == 403
    assert everything() == before


# --- acting ---------------------------------------------------------------------------------


@pytest.mark.parametrize(("noun", "verb"), VERBS, ids=[f"{n}-{v.name}" for n, v in VERBS])
def test_every_verb_writes_an_event_with_the_user(
    boss: Client, whole: Fleet, noun: str, verb: Verb
):
    if earlier := FIRST.get((noun, verb.name)):
        _act_on_first(boss, noun, earlier)
    last = RunEvent.objects.latest("pk").pk
    _act_on_first(boss, noun, verb.name)
    told = list(RunEvent.objects.filter(pk__gt=last).values_list("name", "detail"))
    assert any("ann" in detail for _, detail in told), (noun, verb.name, told)
    assert not LogEntry.objects.exists()


def test_every_verb_on_all_rules_writes_an_event_with_the_user(boss: Client, whole: Fleet):
    for verb in FILE_VERBS:
        last = RunEvent.objects.latest("pk").pk
        boss.post(reverse("admin:agents_app_rulestate_file_act", args=[verb.name]))
        assert "ann" in RunEvent.objects.get(pk__gt=last).detail, verb.name


def _act_on_first(client: Client, noun: str, name: str) -> None:
    """On the first row whose page would offer the button."""
    model = apps.get_model("agents_app", noun)
    page: Any = admin.site._registry[model]
    verb = next(verb for verb in page.verbs if verb.name == name)
    request = client.get(reverse("admin:index")).wsgi_request
    row = next((row for row in page.get_queryset(request) if verb.fits(row)), None)
    assert row is not None, f"nothing in {noun} fits {name}"
    # Who pauses says why, and who scales says how many.
    assert client.post(url_of(row, name), {"text": "3"}).status_code == 302


def test_there_is_a_verb_for_every_table_that_people_act_on():
    assert {noun for noun, _ in VERBS} >= {"agent", "run", "schedule", "workitem", "delivery"}
    assert Schedule._meta.model_name in {noun for noun, _ in VERBS}
