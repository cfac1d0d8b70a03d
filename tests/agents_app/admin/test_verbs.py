"""Actions in the admin: POST requests that require the permission and call the verbs."""

from typing import Any

import pytest
from django.contrib.messages import get_messages
from django.db.models import Model
from django.test import Client
from django.urls import reverse
from django_celery_beat.models import IntervalSchedule, PeriodicTask

from agents_app.models import Agent, Run, RunEvent, Schedule, Scheduler, WorkItem
from tests.agents_app.fleet import NOON, Fleet, at, live_run, run_states, work_states


def url_of(row: Model, verb: str) -> str:
    return reverse(f"admin:agents_app_{row._meta.model_name}_act", args=[row.pk, verb])


def act(client: Client, row: Model, verb: str, **form: str) -> str:
    """Presses the button of the row's page, and returns what the admin says to it."""
    response = client.post(url_of(row, verb), form)
    assert response.status_code == 302, response.status_code
    row.refresh_from_db()
    return " | ".join(str(message) for message in get_messages(response.wsgi_request))


def act_on_selected(client: Client, verb: str, *rows: Model) -> str:
    """Chooses the action in the list."""
    url = reverse(f"admin:agents_app_{rows[0]._meta.model_name}_changelist")
    form: dict[str, Any] = {"action": f"{verb}_selected", "index": "0"}
    response = client.post(url, form | {"_selected_action": [row.pk for row in rows]})
    assert response.status_code == 302, response.status_code
    return " | ".join(str(message) for message in get_messages(response.wsgi_request))


def told(name: str) -> list[str]:
    return list(RunEvent.objects.filter(name=name).values_list("detail", flat=True))


# --- agents ---------------------------------------------------------------------------------


def test_an_agent_is_run_with_a_prompt_and_the_name_of_the_user(boss: Client, fleet: Fleet):
    agent = fleet.agent()
    assert "started" in act(boss, agent, "run", text="  look at\r\nthis\0 ")
    item = agent.work_items.get()
    assert (item.prompt, item.requested_by, item.trigger) == ("look at\nthis", "ann", "manual")
    assert run_states(agent) == ["pending"]


def test_a_run_that_finds_no_free_slot_is_said_to_wait(boss: Client, fleet: Fleet):
    agent = fleet.agent(scale=1)
    fleet.enqueue(agent)
    assert "queued" in act(boss, agent, "run")
    assert work_states(agent) == ["admitted", "queued"]


def test_run_now_and_rerun_lead_to_the_page_of_the_new_run(boss: Client, fleet: Fleet):
    agent = fleet.agent(scale=1)
    home = {"next": reverse("admin:index")}

    def location(row: Model, verb: str) -> str:
        return str(boss.post(url_of(row, verb), home)["Location"])

    assert location(agent, "run") == reverse(
        "admin:agents_app_run_change", args=[Run.objects.get().pk]
    )
    # Without a free slot there is no run yet: the work item says why it waits.
    assert location(agent, "run") == reverse(
        "admin:agents_app_workitem_change", args=[WorkItem.objects.latest("pk").pk]
    )
    item = fleet.enqueue(fleet.agent("other", scale=2))
    ended = live_run(item)
    fleet.finish(fleet.start(item))
    assert location(ended, "rerun") == reverse(
        "admin:agents_app_run_change", args=[Run.objects.latest("pk").pk]
    )


def test_an_agent_without_slots_refuses_to_run_and_says_what_to_do(boss: Client, fleet: Fleet):
    agent = fleet.agent(scale=0)
    assert "give it a scale above 0" in act(boss, agent, "run")
    assert not agent.work_items.exists()


def test_an_agent_is_paused_with_a_note_and_resumed(boss: Client, fleet: Fleet):
    agent = fleet.agent()
    assert "reporter paused: " in act(boss, agent, "pause", text="too loud")
    assert bool(agent.paused_at)
    assert (agent.pause_note, told("agent.paused")) == ("too loud", ["ann: too loud"])
    assert "already paused" in act(boss, agent, "pause")
    assert "resumed" in act(boss, agent, "resume")
    assert not bool(agent.paused_at)
    assert "not paused" in act(boss, agent, "resume")


def test_a_note_longer_than_its_column_is_cut(boss: Client, fleet: Fleet):
    agent = fleet.agent()
    act(boss, agent, "pause", text="x" * 2000)
    assert agent.pause_note == "x" * 500


def test_all_runs_of_an_agent_are_stopped(boss: Client, fleet: Fleet):
    agent = fleet.agent(scale=2)
    running, pending = fleet.start(fleet.enqueue(agent)), live_run(fleet.enqueue(agent))
    assert "stopping 2 runs" in act(boss, agent, "stop")
    assert Run.objects.get(pk=running.run_id).stop_requested_at is not None
    pending.refresh_from_db()
    assert (pending.state, pending.error) == ("stopped", "stopped by ann")
    assert "nothing was running" in act(boss, fleet.agent("idle"), "stop")


def test_several_agents_are_paused_in_the_list_although_one_refuses(boss: Client, fleet: Fleet):
    agents = [fleet.agent("a"), fleet.agent("b", paused_at=NOON), fleet.agent("c")]
    said = act_on_selected(boss, "pause", *agents)
    assert "b: already paused" in said
    assert Agent.objects.filter(paused_at__isnull=False).count() == 3


def test_many_answers_are_summed_up(boss: Client, fleet: Fleet):
    agents = [fleet.agent(f"a{number}") for number in range(8)]
    said = act_on_selected(boss, "pause", *agents)
    assert said.count(" paused: ") == 5
    assert said.endswith("Pause: 8 rows, 0 refused")


def test_the_scale_is_changed_on_the_page_and_noted(boss: Client, fleet: Fleet):
    agent = fleet.agent(scale=1)
    fleet.enqueue(agent)
    fleet.enqueue(agent)
    assert "scale set to 2" in act(boss, agent, "scale", text="2")
    assert (agent.scale, told("agent.scaled")) == (2, ["ann: 2"])
    # The waiting one takes the new slot at once.
    assert work_states(agent) == ["admitted", "admitted"]
    assert "disabled: " in act(boss, agent, "scale", text="0")


@pytest.mark.parametrize("scale", ["-1", "10001", "many", "", "1.5", "99999999999999999999"])
def test_an_impossible_scale_is_refused_with_what_to_give(boss: Client, fleet: Fleet, scale: str):
    agent = fleet.agent(scale=3)
    assert "number from 0 to 10000" in act(boss, agent, "scale", text=scale)
    assert agent.scale == 3


def test_an_agent_s_columns_are_changed_by_its_file_alone(boss: Client, fleet: Fleet):
    agent = fleet.agent()
    url = reverse("admin:agents_app_agent_change", args=[agent.pk])
    form = {"name": "renamed", "instructions": "other", "scale": "7"}
    assert boss.post(url, form).status_code == 403
    agent.refresh_from_db()
    assert (agent.scale, agent.name, agent.instructions) == (1, "reporter", "")


# --- runs -----------------------------------------------------------------------------------


def test_a_run_is_stopped_once(boss: Client, fleet: Fleet):
    run = live_run(fleet.enqueue(fleet.agent()))
    assert "Stopping run" in act(boss, run, "stop")
    assert (run.state, run.error) == ("stopped", "stopped by ann")
    assert "ended already" in act(boss, run, "stop")


def test_a_run_is_run_again_with_the_same_input(boss: Client, fleet: Fleet):
    agent = fleet.agent()
    job = fleet.start(fleet.enqueue(agent, prompt="the same"))
    fleet.finish(job, "failed")
    said = act(boss, Run.objects.get(pk=job.run_id), "rerun")
    again = agent.work_items.latest("id")
    assert (
        f'Rerun queued: <a class="dv-link" href="/admin/runs/{again.runs.get().pk}/change/">'
        in said
    )
    assert again.prompt == "the same"
    assert again.requested_by == f"ann, rerun of run {job.run_id}"


# --- the queue ------------------------------------------------------------------------------


def test_waiting_work_is_dropped_and_restored(boss: Client, fleet: Fleet):
    agent = fleet.agent(scale=1)
    busy, waiting = fleet.start(fleet.enqueue(agent)), fleet.enqueue(agent)
    assert "dropped" in act(boss, waiting, "drop")
    assert (waiting.state, waiting.reason) == ("dropped", "dropped by ann")
    assert "only queued work items can be dropped" in act(boss, waiting, "drop")
    fleet.finish(busy)
    assert "restored to the queue" in act(boss, waiting, "restore")
    # The slot is free by now, so it does not even wait.
    assert waiting.state == WorkItem.State.ADMITTED
    assert "only dropped or cleared" in act(boss, waiting, "restore")
    assert told("work.dropped") == [f"work item {waiting.pk}: dropped by ann"]
    assert told("work.restored") == [f"work item {waiting.pk}: restored by ann"]


# --- schedules and tenants ------------------------------------------------------------------


def test_a_schedule_is_paused_and_resumed_without_firing_at_once(boss: Client, fleet: Fleet):
    schedule = fleet.schedule(fleet.agent(), source=Schedule.Source.FILE)
    assert "paused" in act(boss, schedule, "pause", text="holidays")
    assert (schedule.state, schedule.pause_note) == ("paused", "holidays")
    assert "only an active" in act(boss, schedule, "pause")
    assert "fires at its next time" in act(boss, schedule, "resume")
    assert schedule.state == Schedule.State.ACTIVE
    assert schedule.next_fire_at is not None
    assert schedule.next_fire_at > NOON


def test_a_tenant_is_paused_and_resumed(boss: Client, fleet: Fleet):
    assert "All agents of default paused" in act(boss, fleet.tenant, "pause", text="night")
    assert fleet.tenant.pause_note == "night"
    assert "resumed" in act(boss, fleet.tenant, "resume")
    assert fleet.tenant.paused_at is None


def test_the_scheduler_drains_and_the_pages_say_so(boss: Client, fleet: Fleet):
    scheduler = Scheduler.objects.create(pk=1)
    agent = fleet.agent()
    fleet.worker(lease_until=at(days=100_000))
    assert "Draining: no new run starts" in act(boss, scheduler, "drain")
    assert scheduler.state == Scheduler.State.DRAINING
    assert told("scheduler.stopping") == ["ann: queues kept"]
    assert "is queued: the scheduler is draining" in act(boss, agent, "run")
    shown = boss.get(reverse("admin:index")).context["warnings"]
    assert [text for text in shown if "draining" in text] == shown != []
    listed = boss.get(reverse("admin:agents_app_scheduler_changelist")).content.decode()
    assert "dv-draining" in listed
    page = boss.get(reverse("admin:agents_app_scheduler_change", args=[scheduler.pk]))
    assert page.context["act_buttons"] == []


def test_a_duty_is_switched_off_and_on_again(boss: Client):
    every = IntervalSchedule.objects.create(every=10, period="seconds")
    duty = PeriodicTask.objects.create(name="a duty", task="some.task", interval=every)
    url = reverse("admin:django_celery_beat_periodictask_changelist")
    for action, enabled in (("disable_tasks", False), ("enable_tasks", True)):
        boss.post(url, {"action": action, "_selected_action": [duty.pk], "index": "0"})
        duty.refresh_from_db()
        assert duty.enabled is enabled


# --- who may act, and how -------------------------------------------------------------------


def _one_of_each(fleet: Fleet) -> list[tuple[Model, str]]:
    agent = fleet.agent(scale=1)
    schedule = fleet.schedule(agent)
    run, waiting = live_run(fleet.enqueue(agent)), fleet.enqueue(agent)
    verbs: list[tuple[Model, str]]
    verbs = [(agent, verb) for verb in ("run", "pause", "resume", "stop", "scale")]
    verbs += [(run, "stop"), (run, "rerun"), (waiting, "drop"), (waiting, "restore")]
    return [*verbs, (schedule, "pause"), (schedule, "resume"), (fleet.tenant, "pause")]


def test_a_visitor_can_act_on_nothing(visitor: Client, fleet: Fleet):
    before = _one_of_each(fleet), RunEvent.objects.count(), WorkItem.objects.count()
    for row, verb in before[0]:
        assert visitor.post(url_of(row, verb)).status_code == 403, (row, verb)
        url = reverse(f"admin:agents_app_{row._meta.model_name}_changelist")
        visitor.post(url, {"action": f"{verb}_selected", "_selected_action": [row.pk]})
    agent = Agent.objects.get()
    page = reverse("admin:agents_app_agent_change", args=[agent.pk])
    assert visitor.post(page, {"scale": "7"}).status_code == 403
    assert (RunEvent.objects.count(), WorkItem.objects.count()) == before[1:]
    assert (agent.paused_at, agent.scale) == (None, 1)
    assert Schedule.objects.get().state == "active"


def test_a_visitor_cannot_switch_a_duty_off(visitor: Client):
    every = IntervalSchedule.objects.create(every=10, period="seconds")
    duty = PeriodicTask.objects.create(name="a duty", task="some.task", interval=every)
    url = reverse("admin:django_celery_beat_periodictask_changelist")
    for action in ("disable_tasks", "toggle_tasks", "run_tasks"):
        visitor.post(url, {"action": action, "_selected_action": [duty.pk], "index": "0"})
    duty.refresh_from_db()
    assert duty.enabled


def test_acts_are_posted_and_never_followed_as_links(boss: Client, fleet: Fleet):
    for row, verb in _one_of_each(fleet):
        assert boss.get(url_of(row, verb)).status_code == 405


def test_an_act_without_the_token_of_the_page_is_refused(boss: Client, fleet: Fleet):
    agent = fleet.agent()
    strict = Client(enforce_csrf_checks=True)
    strict.cookies = boss.cookies
    assert strict.post(url_of(agent, "pause")).status_code == 403
    agent.refresh_from_db()
    assert agent.paused_at is None


def test_an_unknown_verb_or_row_is_not_found(boss: Client, fleet: Fleet):
    agent = fleet.agent()
    assert boss.post(url_of(agent, "delete")).status_code == 404
    agent.pk += 1
    assert boss.post(url_of(agent, "pause")).status_code == 404


def test_after_an_action_the_browser_returns_to_its_page_and_never_to_another_host(
    boss: Client, fleet: Fleet
):
    agent, home = fleet.agent(), reverse("admin:index")
    page = reverse("admin:agents_app_agent_change", args=[agent.pk])
    wanted = {home: home, "https://evil.example/": page, "//evil.example": page, "": page}
    for asked, given in wanted.items():
        assert boss.post(url_of(agent, "scale"), {"next": asked, "text": "1"})["Location"] == given


def test_an_agent_that_is_gone_is_forgotten(boss: Client, fleet: Fleet):
    agent = fleet.agent()
    response = boss.post(url_of(agent, "forget"))
    assert "only an agent whose directory was removed" in said_in(response)
    Agent.objects.update(removed_at=NOON)
    response = boss.post(url_of(agent, "forget"))
    assert said_in(response).endswith("reporter forgotten, with its schedules, runs and usage")
    assert response.headers["Location"] == reverse("admin:agents_app_agent_changelist")
    assert not Agent.objects.exists()
    assert told("agent.forgotten") == ["reporter: ann"]


def test_agents_of_an_earlier_project_are_listed_on_request(boss: Client, fleet: Fleet):
    fleet.agent("present")
    fleet.agent("previous", directory="/another/agents/previous", removed_at=NOON)
    listing = reverse("admin:agents_app_agent_changelist")

    def listed(query: str = "") -> list[str]:
        rows = boss.get(f"{listing}{query}").context["cl"].result_list
        return [agent.name for agent in rows]

    assert listed() == ["present"]
    assert listed("?is=removed") == []
    assert listed("?project=all") == ["present", "previous"]
    assert listed("?project=all&is=removed") == ["previous"]


def test_schedules_of_an_earlier_project_are_listed_on_request(boss: Client, fleet: Fleet):
    fleet.schedule(fleet.agent("present"))
    previous = fleet.agent("previous", directory="/another/agents/previous", removed_at=NOON)
    fleet.schedule(previous)
    listing = reverse("admin:agents_app_schedule_changelist")

    def listed(query: str = "") -> list[str]:
        rows = boss.get(f"{listing}{query}").context["cl"].result_list
        return [schedule.agent.name for schedule in rows]

    assert listed() == ["present"]
    assert listed("?project=all") == ["present", "previous"]
    assert listed(f"?agent__id__exact={previous.pk}") == ["previous"]


def test_a_schedule_of_a_file_is_canceled_when_its_agent_is_gone(boss: Client, fleet: Fleet):
    """The same rule as in commands and the API: only a file that exists defines a schedule."""
    schedule = fleet.schedule(fleet.agent(), source="file")
    assert "canceled" not in said_in(boss.post(url_of(schedule, "cancel")))
    Agent.objects.update(removed_at=NOON)
    assert "canceled" in said_in(boss.post(url_of(schedule, "cancel")))


def said_in(response: Any) -> str:
    return " | ".join(str(message) for message in get_messages(response.wsgi_request))
