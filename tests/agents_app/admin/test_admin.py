"""Every page of the admin: content, permissions and number of queries."""

import re
from dataclasses import replace
from typing import Any

import pytest
from django.apps import apps
from django.contrib import admin
from django.contrib.auth.models import User
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.urls import reverse
from django_celery_beat.models import CrontabSchedule, IntervalSchedule, PeriodicTask

from agents_app.admin import machines
from agents_app.admin.queue import WorkItemAdmin
from agents_app.conf import CONF
from agents_app.models import Agent, Run, Tenant, WorkItem
from agents_app.runs import control
from tests.agents_app.admin.visitors import fill, who_may
from tests.agents_app.fleet import NOON, Fleet

NOUNS = [
    *("tenant", "agent", "schedule", "firing", "workitem", "run", "runevent", "heartbeat"),
    *("worker", "machinesnapshot", "scheduler"),
]
DUTIES = ["periodictask", "intervalschedule", "crontabschedule"]
INLINE_SCRIPT = re.compile(r"<script(?![^>]*\bsrc=)(?![^>]*application/json)[^>]*>")


def table(noun: str, app: str = "agents_app") -> str:
    return reverse(f"admin:{app}_{noun}_changelist")


def text_of(client: Client, url: str) -> str:
    response = client.get(url)
    assert response.status_code == 200, (url, response.status_code)
    return response.content.decode()


def page_of_first(noun: str, app: str = "agents_app") -> str:
    row = apps.get_model(app, noun)._default_manager.order_by("pk").first()
    assert row is not None, f"nothing in {noun}"
    return reverse(f"admin:{app}_{noun}_change", args=[row.pk])


# --- what is shown --------------------------------------------------------------------------


@pytest.mark.parametrize("noun", NOUNS)
def test_the_list_and_the_page_of_every_noun_can_be_seen(boss: Client, fleet: Fleet, noun: str):
    fill(fleet)
    assert "0 results" not in text_of(boss, table(noun))
    text_of(boss, page_of_first(noun))


@pytest.mark.parametrize("noun", NOUNS)
def test_an_empty_table_can_be_seen(boss: Client, noun: str):
    text_of(boss, table(noun))


@pytest.mark.parametrize("noun", DUTIES)
def test_system_duties_have_the_same_look(boss: Client, noun: str):
    every, _ = IntervalSchedule.objects.get_or_create(every=10, period="seconds")
    CrontabSchedule.objects.create(hour="4")
    PeriodicTask.objects.create(name="a duty", task="some.task", interval=every)
    assert 'id="nav-sidebar-apps"' in text_of(boss, table(noun, "django_celery_beat"))
    text_of(boss, page_of_first(noun, "django_celery_beat"))
    text_of(boss, reverse(f"admin:django_celery_beat_{noun}_add"))


@pytest.mark.parametrize("noun", DUTIES)
def test_pages_of_system_duties_have_no_script_that_the_content_security_policy_blocks(
    boss: Client, noun: str
):
    """Guard: the policy allows no inline script. The template of django-celery-beat has one."""
    crontab = CrontabSchedule.objects.create(hour="4", minute="30")
    IntervalSchedule.objects.get_or_create(every=10, period="seconds")
    PeriodicTask.objects.create(name="a duty", task="some.task", crontab=crontab)
    add = reverse(f"admin:django_celery_beat_{noun}_add")
    for url in (table(noun, "django_celery_beat"), page_of_first(noun, "django_celery_beat"), add):
        assert INLINE_SCRIPT.findall(text_of(boss, url)) == [], url


def test_the_form_of_a_periodic_task_describes_each_crontab_in_words(boss: Client):
    crontab = CrontabSchedule.objects.create(hour="4", minute="30", timezone="UTC")
    shown = text_of(boss, reverse("admin:django_celery_beat_periodictask_add"))
    assert f">At 04:30 AM UTC ({crontab})</option>" in " ".join(shown.split())


@pytest.mark.parametrize("noun", ["user", "group"])
def test_people_can_be_added_and_changed(boss: Client, noun: str):
    text_of(boss, table(noun, "auth"))
    text_of(boss, reverse(f"admin:auth_{noun}_add"))


def test_a_new_user_can_be_made(boss: Client):
    password = "long-enough-4-all"
    form = {"username": "bob", "password1": password, "password2": password}
    boss.post(reverse("admin:auth_user_add"), form | {"usable_password": "true"})
    assert User.objects.get(username="bob").check_password(password)


def test_an_agent_shows_why_its_file_is_not_used(boss: Client, fleet: Fleet):
    agent = fleet.agent("broken", definition_error="SKILL.md, line 3: <b>scale</b> is no number")
    for url in (table("agent"), page_of_first("agent"), reverse("admin:index")):
        shown = text_of(boss, url)
        assert "line 3: &lt;b&gt;scale&lt;/b&gt; is no number" in shown
        assert "dv-invalid" in shown
    assert agent.name in shown


def test_the_queue_opens_on_what_waits_and_a_search_finds_work_in_any_state(
    boss: Client, fleet: Fleet
):
    agent = fleet.agent(scale=1)
    started, waiting = fleet.enqueue(agent), fleet.enqueue(agent)

    def shown(query: str = "") -> list[int]:
        listed = boss.get(f"{table('workitem')}{query}").context["cl"].result_list
        return [item.pk for item in listed]

    assert shown() == shown("?state__exact=queued") == [waiting.pk]
    assert shown("?state__exact=admitted") == shown(f"?q={started.pk}") == [started.pk]
    assert shown("?state__exact=all") == [waiting.pk, started.pk]
    page = reverse("admin:agents_app_workitem_change", args=[waiting.pk])
    assert "no slot is free, 0 queued before it" in text_of(boss, page)
    control.drop_work(waiting, "ann", NOON)
    assert "The queue is empty" in text_of(boss, table("workitem"))


def test_the_waiting_work_comes_first(boss: Client, fleet: Fleet):
    agent = fleet.agent(scale=1)
    fleet.enqueue(agent)
    waiting = fleet.enqueue(agent)
    done = fleet.enqueue(fleet.agent("other"))
    fleet.finish(fleet.start(done))
    shown = boss.get(f"{table('workitem')}?state__exact=all").context["cl"].result_list
    assert shown[0].pk == waiting.pk
    assert [item.state for item in shown] == ["queued", "admitted", "done"]


def test_pages_of_the_queue_contain_each_unfinished_and_finished_item_once(
    boss: Client, fleet: Fleet, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(WorkItemAdmin, "list_per_page", 2)
    busy, other = fleet.agent(scale=1), fleet.agent("other", scale=9)
    done = [fleet.enqueue(other) for _ in range(4)]
    for item in done:
        fleet.finish(fleet.start(item))
    going_on, *waiting = [fleet.enqueue(busy) for _ in range(3)]
    expected = [item.pk for item in [*reversed(waiting), going_on, *reversed(done)]]
    every = f"{table('workitem')}?state__exact=all"
    pages = [boss.get(f"{every}&p={n}").context["cl"].result_list for n in range(1, 5)]
    assert [item.pk for page in pages for item in page] == expected
    sorted_by_state = boss.get(f"{every}&o=3").context["cl"].result_list
    assert [item.state for item in sorted_by_state] == ["queued", "queued"]


def test_a_worker_is_shown_with_its_threads_in_use_and_as_silent_without_a_lease(
    boss: Client, fleet: Fleet
):
    fleet.worker(concurrency=4)
    fleet.start(fleet.enqueue(fleet.agent()))
    shown = text_of(boss, table("worker"))
    assert "1 / 4" in shown
    assert "dv-silent" in shown


FLOWER_LINK = f'href="http://127.0.0.1:{CONF.flower_port}"'
FLOWER_WORDS = f"Flower: port {CONF.flower_port} on the server"


def pages_with_flower(client: Client, host: str) -> list[str]:
    """The menu alone, the page of a worker and the machines, as asked for by this name."""
    urls = [page_of_first("worker"), reverse("admin:agents_app_worker_charts")]
    answers = [client.get(url, headers={"host": host}) for url in (table("tenant"), *urls)]
    assert {answer.status_code for answer in answers} == {200}
    return [answer.content.decode() for answer in answers]


@pytest.mark.parametrize("host", ["127.0.0.1:8080", "127.3.2.1", "localhost", "[::1]:8080"])
def test_flower_is_linked_for_those_on_the_server(
    boss: Client, fleet: Fleet, settings: Any, host: str
):
    settings.ALLOWED_HOSTS = ["*"]
    fleet.worker()
    for shown in pages_with_flower(boss, host):
        assert FLOWER_LINK in shown
        assert FLOWER_WORDS not in shown


@pytest.mark.parametrize("host", ["drover.example:8080", "192.0.2.7", "localhost.example"])
def test_the_port_of_flower_is_shown_to_browsers_on_other_machines(
    boss: Client, fleet: Fleet, settings: Any, host: str
):
    settings.ALLOWED_HOSTS = ["*"]
    fleet.worker()
    menu, *pages = pages_with_flower(boss, host)
    assert "Flower" not in menu
    for shown in pages:
        assert FLOWER_LINK not in shown
        assert FLOWER_WORDS in shown


def test_flower_in_the_menu_requires_the_permission_to_see_workers(db: None):
    answer = who_may("view_tenant").get(table("tenant"), headers={"host": "localhost"})
    assert answer.status_code == 200
    assert FLOWER_LINK not in answer.content.decode()


@pytest.mark.parametrize("host", ["localhost", "testserver"])
def test_a_flower_that_was_left_out_is_not_spoken_of(
    boss: Client, fleet: Fleet, monkeypatch: pytest.MonkeyPatch, host: str
):
    monkeypatch.setattr(machines, "CONF", replace(CONF, flower=False))
    fleet.worker()
    _, worker, list_page = pages_with_flower(boss, host)
    assert "Flower" not in worker.partition('id="dv-worker"')[2]
    assert "Flower" not in list_page


# --- the overview ---------------------------------------------------------------------------


def test_the_overview_shows_what_runs_what_waits_what_failed_and_what_is_next(
    boss: Client, fleet: Fleet
):
    fill(fleet)
    response = boss.get(reverse("admin:index"))
    cards = {card.label: card.number for card in response.context["cards"]}
    assert cards["Running"] == cards["Queued"] == cards["Failed in 24 h"] == 1
    assert [line.run.state for line in response.context["running"]] == ["running"]
    assert [line.run.state for line in response.context["recent"]] == ["failed"]
    assert [line.schedule.name for line in response.context["next_fires"]] == ["main"]
    (entry,) = response.context["agents"]
    assert "1 / 1" in entry.summary.slots
    assert "failed" in entry.summary.outcome


def test_an_empty_fleet_says_what_to_do(boss: Client):
    shown = text_of(boss, reverse("admin:index"))
    for advice in ("SKILL.md", "manage.py up", "add a schedule", "No runs in progress"):
        assert advice in shown


def test_the_overview_warns_of_files_that_cannot_be_read_and_of_a_pause(boss: Client):
    Tenant.objects.create(name="default", definition_errors=["agents/x/SKILL.md: line 2: no"])
    Tenant.objects.update(paused_at="2026-03-02T12:00Z")
    shown = text_of(boss, reverse("admin:index"))
    assert "agents/x/SKILL.md: line 2: no" in shown
    assert "All agents of default are paused" in shown


def test_the_links_of_the_cards_lead_to_what_they_count(boss: Client, fleet: Fleet):
    fill(fleet)
    cards = boss.get(reverse("admin:index")).context["cards"]
    for card in cards[:3]:
        assert len(boss.get(card.url).context["cl"].result_list) == card.number, card


# --- who may see ----------------------------------------------------------------------------


def test_every_page_requires_a_login(client: Client, fleet: Fleet):
    fill(fleet)
    run = page_of_first("run")
    output = reverse("admin:agents_app_run_text", args=[Run.objects.earliest("id").pk])
    for url in (reverse("admin:index"), table("run"), run, output, f"{table('schedule')}preview/"):
        response = client.get(url)
        assert response.status_code == 302
        assert response["Location"].startswith("/admin/login/"), url


def test_staff_without_permissions_learn_nothing_from_the_overview(client: Client, fleet: Fleet):
    fill(fleet)
    client.force_login(User.objects.create_user("new", is_staff=True))
    shown = text_of(client, reverse("admin:index"))
    assert "agent-0" not in shown
    assert "<h2>Running</h2>" not in shown
    assert client.get(table("run")).status_code == 403


@pytest.mark.parametrize("noun", NOUNS)
def test_a_visitor_sees_everything_and_is_offered_no_act(visitor: Client, fleet: Fleet, noun: str):
    fill(fleet)
    for url in (table(noun), page_of_first(noun), reverse("admin:index")):
        shown = text_of(visitor, url)
        assert 'class="dv-act"' not in shown, url
        assert 'name="_save"' not in shown, url
        assert 'name="action"' not in shown, url


def test_no_user_can_add_change_or_delete_records(boss: Client, fleet: Fleet):
    fill(fleet)
    for noun in set(NOUNS) - {"schedule"}:
        assert boss.get(reverse(f"admin:agents_app_{noun}_add")).status_code == 403
    for noun in NOUNS:
        row = apps.get_model("agents_app", noun)._default_manager.earliest("pk")
        url = reverse(f"admin:agents_app_{noun}_delete", args=[row.pk])
        assert boss.post(url, {"post": "yes"}).status_code == 403
    assert boss.post(page_of_first("run"), {"state": "succeeded"}).status_code == 403


# --- how many queries -----------------------------------------------------------------------


@pytest.mark.parametrize("noun", ["", *NOUNS])
def test_the_queries_of_a_list_do_not_grow_with_its_rows(boss: Client, fleet: Fleet, noun: str):
    url = table(noun) if noun else reverse("admin:index")
    fill(fleet, agents=5)
    few = queries_of(boss, url)
    Tenant.objects.all().delete()
    fleet.workers.clear()
    fleet.tenant = Tenant.objects.create(name="default")
    fill(fleet, agents=50)
    assert Agent.objects.count() == 50
    assert WorkItem.objects.count() == 150
    assert queries_of(boss, url) == few
    # The first page shows something of everything.
    assert few <= (20 if noun else 24)


def queries_of(client: Client, url: str) -> int:
    client.get(url)
    with CaptureQueriesContext(
        connection,
    ) as queries:
        text_of(client, url)
    return len(queries)


def test_every_table_of_drover_has_a_page_but_the_secret_and_the_inner_ones():
    shown = {model._meta.model_name for model in admin.site._registry}
    ours = {model._meta.model_name for model in apps.get_app_config("agents_app").get_models()}
    # What a rule book holds is on the page of the rules.
    assert ours - shown == {"runoutput", "metrictotal", "metriccursor", "rulebook"}


def test_the_queue_says_why_each_item_waits(boss: Client, fleet: Fleet):
    away = "Docker is not reachable at unix:///var/run/docker.sock"
    agents = [fleet.agent("away"), fleet.agent("busy")]
    # The first item of each agent has its only slot.
    items = [fleet.enqueue(agent) for agent in agents * 2]
    WorkItem.objects.filter(pk=items[2].pk).update(reason=f"docker_unavailable: {away}")
    paused = fleet.agent("paused", paused_at=NOON, pause_note="lunch")
    fleet.enqueue(paused)
    shown = text_of(boss, table("workitem"))
    for reason in (f">{away}<", ">waiting for a slot<", ">the agent is paused: lunch<"):
        assert shown.count(reason) == 1, reason
