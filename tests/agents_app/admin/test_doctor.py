"""The doctor's page, and lists without rows: what is wrong, and what to do about it."""

from datetime import timedelta

import pytest
from django.apps import apps
from django.contrib import admin
from django.contrib.auth.models import User
from django.test import Client
from django.urls import reverse

from agents_app.admin import doctor
from agents_app.admin.base import DroverAdmin, utc_now
from agents_app.admin.doctor import command_in, groups
from agents_app.admin.empty_lists import EMPTY_LISTS
from agents_app.maintenance.findings import OK, WARNING, WRONG, Finding
from agents_app.models import Worker
from tests.agents_app.admin.visitors import who_may
from tests.agents_app.fleet import Fleet


@pytest.fixture(autouse=True)
def _nothing_was_found_before(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(doctor, "_LAST", doctor._LastCheck())


# --- the doctor -----------------------------------------------------------------------------


def test_the_gravest_findings_come_first():
    found = [Finding("a", OK, ""), Finding("b", WRONG, ""), Finding("c", WARNING, "")]
    assert [group.verdict for group in groups(found)] == [WRONG, WARNING, OK]
    assert [group.title for group in groups(found[:1])] == ["Healthy"]


@pytest.mark.parametrize(
    ("advice", "command"),
    [
        ("start Drover: manage.py up", "manage.py up"),
        ("docker pull alpine:3", "docker pull alpine:3"),
        ("fix scheduler.rules; manage.py rules test shows the line", "manage.py rules test"),
        ("manage.py discover --tenant acme lists them", "manage.py discover --tenant acme"),
        ("free some", ""),
    ],
)
def test_a_command_in_the_advice_can_be_copied(advice: str, command: str):
    assert command_in(advice) == command


def test_the_page_performs_no_check_before_it_is_shown(
    boss: Client, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(doctor, "examine", lambda _: pytest.fail("the page must not wait for it"))
    shown = boss.get(reverse("doctor")).content.decode()
    assert 'hx-trigger="load"' in shown


def test_what_is_found_is_shown_with_what_to_do(boss: Client, fleet: Fleet):
    fleet.agent("<b>bold</b>", command=["no-such-program-anywhere"])
    shown = boss.get(reverse("doctor_findings")).content.decode()
    assert "cannot run no-such-program-anywhere" in shown
    assert "&lt;b&gt;bold" in shown and "<b>bold" not in shown
    assert "none is alive" in shown
    assert ">invariants<" not in shown
    assert ">invariants<" in boss.get(reverse("doctor_findings") + "?rows=1").content.decode()


def test_the_sidebar_shows_how_much_was_wrong_for_a_while(
    boss: Client, fleet: Fleet, monkeypatch: pytest.MonkeyPatch
):
    assert doctor.problem_count() == ""
    wrong = [Finding("a", WRONG, ""), Finding("b", WRONG, ""), Finding("c", OK, "")]
    monkeypatch.setattr(doctor, "examine", lambda _: wrong)
    boss.get(reverse("doctor_findings"))
    assert doctor.problem_count() == "2"
    assert doctor._LAST.text(utc_now() + timedelta(hours=1)) == ""


def test_the_doctor_requires_the_permission_to_see_all_quoted_tables(visitor: Client, fleet: Fleet):
    """Guard: findings quote notes of pauses, names of credentials and lines of rules."""
    fleet.agent()
    clerk = who_may(*(f"view_{noun}" for noun in doctor._QUOTED if noun != "credential"))
    for name in ("doctor", "doctor_findings"):
        assert clerk.get(reverse(name)).status_code == 403
        assert visitor.get(reverse(name)).status_code == 200
        assert Client().get(reverse(name)).status_code == 302
    for person, offered in ((clerk, False), (visitor, True)):
        index = person.get(reverse("admin:index")).content.decode()
        assert (f'href="{reverse("doctor")}"' in index) == offered


def test_the_tables_that_findings_quote_are_tables():
    assert all(apps.get_model("agents_app", noun) for noun in doctor._QUOTED)


# --- the machines ---------------------------------------------------------------------------


def test_the_charts_of_machines_require_the_permission_to_see_workers(
    client: Client, visitor: Client
):
    url = reverse("admin:agents_app_worker_charts")
    client.force_login(User.objects.create_user("new", is_staff=True))
    assert client.get(url).status_code == 403
    assert "No data for the last hour" in visitor.get(url).content.decode()


def test_the_page_of_a_worker_shows_what_runs_and_what_ended_there(boss: Client, fleet: Fleet):
    agent = fleet.agent(scale=2)
    fleet.worker(name="here")
    fleet.finish(fleet.start(fleet.enqueue(agent)))
    running = fleet.start(fleet.enqueue(agent))
    url = reverse("admin:agents_app_worker_change", args=[Worker.objects.get(name="here").pk])
    context = boss.get(url).context
    assert [line.run.pk for line in context["runs"]] == [running.run_id]
    assert [line.run.state for line in context["ended"]] == ["succeeded"]


# --- lists without rows ---------------------------------------------------------------------


def test_every_list_of_drover_knows_why_it_is_empty():
    silent = [
        model._meta.model_name
        for model, pages in admin.site._registry.items()
        if isinstance(pages, DroverAdmin) and model._meta.model_name not in EMPTY_LISTS
    ]
    assert silent == []


def test_an_empty_list_says_why_and_a_filtered_one_that_nothing_fits(boss: Client):
    url = reverse("admin:agents_app_run_changelist")
    empty = boss.get(url).content.decode()
    assert "No runs yet" in empty
    assert "python manage.py run AGENT" in empty
    assert "No matches" in boss.get(f"{url}?state__exact=failed").content.decode()


def test_a_search_without_results_has_the_same_text_in_every_list(boss: Client):
    searched = [each for each in admin.site._registry.values() if each.search_fields]
    assert {"user", "periodictask", "run"} <= {each.opts.model_name for each in searched}
    for each in searched:
        url = reverse(f"admin:{each.opts.app_label}_{each.opts.model_name}_changelist")
        shown = boss.get(url, {"q": "no such entry"}).content.decode()
        assert "No entry matches the search and filters." in shown, url
        assert "yielded" not in shown, url


# --- the stream of events -------------------------------------------------------------------


def test_only_users_who_may_read_the_stream_listen_to_it(
    boss: Client, visitor: Client, client: Client
):
    client.force_login(User.objects.create_user("new", is_staff=True))
    for person, listens in ((boss, True), (visitor, True), (client, False)):
        shown = person.get(reverse("admin:index")).content.decode()
        assert ("drover/live.js?listen" in shown) == listens
