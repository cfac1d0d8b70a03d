"""The overview: timeline, charts and agents, also with many rows."""

from datetime import UTC, datetime, timedelta

import pytest
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.urls import reverse

from agents_app.admin.overview_agents import MOST_AGENTS, kind_of_schedule, trigger_badges
from agents_app.admin.overview_cards import MOST_OF_A_KIND
from agents_app.admin.timeline import MOST_LANES, PIECES
from agents_app.models import (
    Agent,
    MachineSnapshot,
    RuleBook,
    Run,
    Schedule,
    Tenant,
    Usage,
    WorkItem,
)
from agents_app.reports.activity import (
    group_ended_runs,
    measure_firing_lateness,
    read_latest_triggers,
)
from tests.agents_app.admin.visitors import fill, who_may
from tests.agents_app.fleet import NOON, Fleet, at


def shown(client: Client, query: str = "") -> dict:
    response = client.get(reverse("admin:index") + query)
    assert response.status_code == 200
    return response.context


# --- what is counted ------------------------------------------------------------------------


def test_runs_that_ended_alike_in_one_piece_of_time_are_one_pile(fleet: Fleet):
    agent = fleet.agent(scale=9)
    for second, state in ((0, "succeeded"), (5, "succeeded"), (10, "failed"), (300, "succeeded")):
        job = fleet.start(fleet.enqueue(agent, at(second)), at(second + 1))
        fleet.finish(job, state, at(second + 2))
    piles = [(pile.state, pile.count) for pile in group_ended_runs(at(hours=-1), 50)]
    assert sorted(piles) == [("failed", 1), ("succeeded", 1), ("succeeded", 2)]
    first = next(pile for pile in group_ended_runs(at(hours=-1), 50) if pile.count == 2)
    assert (first.began_at, first.ended_at) == (at(1), at(7))
    assert first.waited_seconds == pytest.approx(1, abs=0.01)


def test_runs_that_ended_before_are_not_counted(fleet: Fleet):
    fleet.finish(fleet.start(fleet.enqueue(fleet.agent())), now=NOON)
    assert len(group_ended_runs(NOON, 50)) == 1
    assert group_ended_runs(at(1), 50) == []


def test_lateness_is_from_the_due_instant_to_its_record(fleet: Fleet):
    firing = fleet.firing(fleet.schedule(fleet.agent()))
    firing.recorded_at = at(2.5)
    firing.save()
    (late,) = measure_firing_lateness(at(hours=-1), 50)
    assert late.seconds == pytest.approx(2.5, abs=0.01)
    assert (late.at, late.count) == (at(2.5), 1)


def test_what_started_an_agent_lately_is_known(fleet: Fleet):
    agent = fleet.agent(scale=3)
    for trigger in ("call", "call", "message"):
        fleet.start(fleet.enqueue(agent, trigger=trigger))
    assert read_latest_triggers() == {agent.pk: {"call", "message"}}


# --- what is shown --------------------------------------------------------------------------


def test_the_timeline_shows_what_runs_and_what_ended(boss: Client, fleet: Fleet):
    fill(fleet)
    activity = shown(boss)["activity"]
    (lane,) = activity["lanes"]
    assert (lane.name, lane.runs) == ("agent-0", 2)
    assert {bar.state for bar in lane.bars} == {"failed", "running"}


@pytest.mark.parametrize("hours", [1, 6, 24])
def test_how_far_back_can_be_chosen_and_stays_chosen(boss: Client, fleet: Fleet, hours: int):
    now = datetime.now(UTC)
    fleet.agent()
    MachineSnapshot.objects.create(
        host="here",
        at=now - timedelta(hours=hours, minutes=-1),
        cpu_percent=1,
        memory_used_mb=1,
        memory_total_mb=2,
        disk_free_mb=3,
        active_runs=0,
        queue_depth=17,
        active_workers=1,
    )
    context = shown(boss, f"?hours={hours}")
    assert context["activity"]["charts"][0].bound == "max 17"
    text = boss.get(f"{reverse('admin:index')}?hours={hours}").content.decode()
    assert f'hx-get="/admin/?hours={hours}"' in text
    assert f'href="?hours={hours}" aria-current="true"' in text


def test_what_was_spent_today_and_this_month_is_shown(boss: Client, fleet: Fleet):
    today = datetime.now(UTC).date()
    agent = fleet.agent()
    Usage.objects.create(tenant=fleet.tenant, agent=agent, day=today, cost_usd="1.50")
    Usage.objects.create(
        tenant=fleet.tenant, agent=agent, day=today - timedelta(days=40), cost_usd="90"
    )
    card = next(card for card in shown(boss)["cards"] if card.label == "Spent today")
    assert (card.number, card.detail) == ("$1.50", "$1.50 this month")
    assert boss.get(card.url).status_code == 200


def test_an_agent_shows_what_starts_it(boss: Client, fleet: Fleet):
    agent = fleet.agent(webhooks=[{"source": "github"}])
    fleet.schedule(agent, "0 9 * * *")
    fleet.schedule(agent, "15m", name="often")
    fleet.start(fleet.enqueue(agent, trigger="call"))
    (entry,) = shown(boss)["agents"]
    assert [badge.kind for badge in entry.triggers] == ["cron", "interval", "webhook", "call"]


@pytest.mark.parametrize(
    ("expression", "kind"),
    [
        ("*/5 * * * *", "cron"),
        ("@daily", "cron"),
        ("15m", "interval"),
        ("every 2 hours", "interval"),
        ("every day at 9am and 17:30", "cron"),
    ],
)
def test_the_kind_of_a_schedule_is_read_from_its_expression(expression: str, kind: str):
    assert kind_of_schedule(expression, one_shot=False) == kind
    assert kind_of_schedule(expression, one_shot=True) == "once"


def test_triggers_that_are_not_known_have_no_badge():
    assert trigger_badges({"manual", "schedule"}) == []


@pytest.mark.parametrize("noun", [None, "tenant", "agent", "rulestate"])
def test_a_warning_requires_the_permission_to_see_what_it_quotes(fleet: Fleet, noun: str | None):
    warn_of_everything(fleet)
    said = shown(who_may(*([f"view_{noun}"] if noun else [])))["warnings"]
    quotes = {"tenant": "moving out", "agent": "x/SKILL.md", "rulestate": "scheduler.rules"}
    assert any("No worker is running" in line for line in said)
    told = {name for name, words in quotes.items() if any(words in line for line in said)}
    assert told == ({noun} if noun else set())


def test_of_many_warnings_of_a_kind_the_first_are_shown(boss: Client, fleet: Fleet):
    warn_of_everything(fleet)
    said = [line for line in shown(boss)["warnings"] if "Start Drover" not in line]
    assert len(said) == 1 + 2 * (MOST_OF_A_KIND + 1)
    assert said[MOST_OF_A_KIND + 1] == said[-1] == "7 more errors of this kind."


def warn_of_everything(fleet: Fleet) -> None:
    many = range(MOST_OF_A_KIND + 7)
    Tenant.objects.update(
        paused_at=NOON, pause_note="moving out", definition_errors=[f"{n}x/SKILL.md" for n in many]
    )
    wrong = [{"line": n, "column": 1, "problem": "no rule"} for n in many]
    RuleBook.objects.create(tenant=fleet.tenant, errors=wrong, loaded_at=NOON)


def test_a_project_without_agents_shows_how_to_make_the_first(boss: Client, settings):
    context = shown(boss)
    assert "SKILL.md <<'END'" in context["first_run"].create
    assert "data-copy" in boss.get(reverse("admin:index")).content.decode()


def test_the_first_agent_that_is_shown_can_be_made_with_the_command(tmp_path):
    import subprocess

    from agents_app.admin.overview import first_run
    from agents_app.skills.discover import discover_project

    project = tmp_path / "with 'quotes' and $HOME"
    subprocess.run(["sh", "-c", first_run(project).create], check=True)
    found = discover_project(project)
    assert [agent.name for agent in found.agents] == ["hello"]
    assert not found.errors


# --- very many ------------------------------------------------------------------------------

AGENTS, RUNS = 1000, 3000


def crowd(fleet: Fleet, agents: int, runs: int) -> None:
    """Runs of the last hour, evenly over all agents, without any verbs."""
    now = datetime.now(UTC)
    Agent.objects.bulk_create(
        Agent(tenant=fleet.tenant, name=f"agent-{number:04}", command=["true"])
        for number in range(agents)
    )
    keys = list(Agent.objects.values_list("pk", flat=True))
    items = WorkItem.objects.bulk_create(
        WorkItem(
            tenant=fleet.tenant,
            agent_id=keys[number % agents],
            state="done",
            trigger="manual",
            created_at=now,
            available_at=now,
        )
        for number in range(runs)
    )
    made = (
        Run(
            tenant=fleet.tenant,
            agent_id=item.agent_id,
            work_item=item,
            state="succeeded",
            trigger="manual",
            created_at=now - timedelta(seconds=3600 * number / runs + 5),
            started_at=now - timedelta(seconds=3600 * number / runs + 4),
            finished_at=now - timedelta(seconds=3600 * number / runs),
        )
        for number, item in enumerate(items)
    )
    Run.objects.bulk_create(made, batch_size=500)
    Schedule.objects.bulk_create(
        Schedule(tenant=fleet.tenant, agent_id=key, name="main", expression="15m", next_fire_at=now)
        for key in keys
    )


def test_the_first_page_is_bounded_whatever_the_size_of_the_fleet(boss: Client, fleet: Fleet):
    crowd(fleet, 5, 50)
    few = queries_of(boss)
    fleet.tenant.agents.all().delete()
    crowd(fleet, AGENTS, RUNS)
    assert queries_of(boss) == few
    response = boss.get(reverse("admin:index"))
    context = response.context
    assert (len(context["agents"]), context["agents_total"]) == (MOST_AGENTS, AGENTS)
    activity = context["activity"]
    assert len(activity["lanes"]) == MOST_LANES
    assert activity["lanes_left_out"] == AGENTS - MOST_LANES
    assert all(len(lane.bars) <= PIECES + 1 for lane in activity["lanes"])
    assert len(response.content) < 700_000


def queries_of(client: Client) -> int:
    client.get(reverse("admin:index"))
    with CaptureQueriesContext(connection) as queries:
        client.get(reverse("admin:index"))
    return len(queries)


def test_in_a_large_fleet_those_at_work_come_first(boss: Client, fleet: Fleet):
    for number in range(MOST_AGENTS + 1):
        last = fleet.agent(f"agent-{number:03}")
    fleet.start(fleet.enqueue(last))
    assert shown(boss)["agents"][0].summary.agent == last
