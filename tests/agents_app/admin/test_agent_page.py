"""The page of an agent: content, history and number of queries."""

import re
from collections.abc import Sequence
from datetime import timedelta
from decimal import Decimal

import pytest
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.urls import reverse

from agents_app.admin.agent_history import MOST_RUNS, history_of
from agents_app.admin.bar_charts import HEIGHT, WIDTH, ChartColumn, chart
from agents_app.admin.base import utc_now
from agents_app.admin.formatting import page_of
from agents_app.admin.markdown import as_html
from agents_app.models import Agent, Run, Usage, WorkItem
from agents_app.signals import messages
from tests.agents_app.admin.test_admin import queries_of, text_of
from tests.agents_app.admin.visitors import who_may
from tests.agents_app.fleet import Fleet

PARTS = ("now", "history")


def part(agent: Agent, name: str) -> str:
    return reverse(f"admin:agents_app_agent_{name}", args=[agent.pk])


def many_runs(agent: Agent, count: int, states: Sequence[str] = ("succeeded",)) -> None:
    """Written at once: a test of reading. Each takes as many seconds as its number."""
    now = utc_now()
    whose = {"tenant": agent.tenant, "agent": agent, "trigger": "manual"}
    item = WorkItem.objects.create(**whose, created_at=now, available_at=now, state="done")
    runs = (
        Run(
            **whose,
            work_item=item,
            state=states[number % len(states)],
            created_at=now,
            started_at=now - timedelta(seconds=number + 1),
            finished_at=now,
        )
        for number in range(count)
    )
    # PostgreSQL takes so many parameters at once.
    Run.objects.bulk_create(runs, batch_size=500)


# --- what is shown --------------------------------------------------------------------------


def test_the_page_shows_the_file_the_next_fires_what_waits_and_what_is_unread(
    boss: Client, fleet: Fleet
):
    agent = fleet.agent(scale=1, directory="/fleet/agents/reporter", params={"depth": 3})
    fleet.schedule(agent, "0 9 * * 1", next_fire_at=utc_now() + timedelta(days=1))
    fleet.start(fleet.enqueue(agent))
    fleet.enqueue(agent, requested_by="zoe")
    messages.send(agent, "<b>hi</b>", "bob", utc_now())
    shown = text_of(boss, page_of(agent))
    assert "/fleet/agents/reporter/SKILL.md" in shown
    assert shown.count("09:00") >= 2
    assert "manual · zoe" in shown
    assert "bob: &lt;b&gt;hi&lt;/b&gt;" in shown
    assert "depth: 3" in shown
    assert "act/run/" in shown
    assert "act/scale/" in shown


SAID = {
    "message": "bob: the plan",
    "workitem": "manual · zoe",
    "schedule": "Next fires",
    "run": "Latest runs",
}


@pytest.mark.parametrize("noun", [None, *SAID])
def test_each_part_requires_the_permission_to_see_its_table(fleet: Fleet, noun: str | None):
    """Guard: messages and work may contain more than viewers of agents may read."""
    agent = fleet.agent(scale=1)
    fleet.schedule(agent, "0 9 * * 1", next_fire_at=utc_now() + timedelta(days=1))
    fleet.start(fleet.enqueue(agent))
    fleet.enqueue(agent, requested_by="zoe")
    messages.send(agent, "the plan", "bob", utc_now())
    client = who_may("view_agent", *([f"view_{noun}"] if noun else []))
    for url in (page_of(agent), part(agent, "now")):
        shown = text_of(client, url)
        assert {name for name, words in SAID.items() if words in shown} == {noun} - {None}


def test_a_visitor_sees_every_part_and_no_form(visitor: Client, fleet: Fleet):
    agent = fleet.agent()
    fleet.start(fleet.enqueue(agent))
    for url in (page_of(agent), *(part(agent, name) for name in PARTS)):
        shown = text_of(visitor, url)
        assert "act/" not in shown, url
        assert "dv-prompt" not in shown


def test_the_parts_of_the_page_require_the_permission_to_see_agents(
    client: Client, fleet: Fleet, django_user_model
):
    agent = fleet.agent()
    for name in PARTS:
        assert client.get(part(agent, name)).status_code == 302
    client.force_login(django_user_model.objects.create_user("new", is_staff=True))
    for name in PARTS:
        assert client.get(part(agent, name)).status_code == 403


def test_a_removed_or_disabled_agent_is_offered_no_run(boss: Client, fleet: Fleet):
    assert "act/run/" not in text_of(boss, page_of(fleet.agent(scale=0)))
    gone = fleet.agent("gone", removed_at=utc_now())
    offered = set(re.findall(r"act/(\w+)/", text_of(boss, part(gone, "now"))))
    assert offered <= {"pause", "forget"}


# --- instructions ---------------------------------------------------------------------------


def test_instructions_are_rendered_and_can_do_nothing_to_the_page(boss: Client, fleet: Fleet):
    written = "# Report\n\n<script>alert(1)</script>\n\n**Say** [more](https://example.com)"
    shown = text_of(boss, page_of(fleet.agent(instructions=written)))
    assert "<h3>Report</h3>" in shown
    assert "&lt;script&gt;alert(1)&lt;/script&gt;" in shown
    assert "<strong>Say</strong>" in shown
    assert 'rel="noopener noreferrer nofollow"' in shown


@pytest.mark.parametrize(
    "written",
    [
        "[x](javascript:alert(1))",
        "[x](JaVaScRiPt:alert(1))",
        "[x](data:text/html,<script>alert(1)</script>)",
        "[x](vbscript:x)",
        "[x](//evil.example)",
        "<javascript:alert(1)>",
        "![x](https://evil.example/pixel.png)",
        "<img src=x onerror=alert(1)>",
        '[x](https://example.com "a\\" onmouseover=alert(1)")',
        "[r]: javascript:alert(1)\n\n[r]",
    ],
)
def test_no_script_no_picture_and_no_strange_link_comes_out_of_markdown(written: str):
    html = as_html(written)
    assert 'href="javascript' not in html.lower()
    assert "<img" not in html
    assert "<script" not in html
    assert ' onmouseover="' not in html
    assert html.count("href=") == html.count('href="https://')


def test_the_script_of_a_shell_agent_is_shown_as_it_is(boss: Client, fleet: Fleet):
    agent = fleet.agent(harness="shell", instructions="# not a heading\necho '<b>'\n")
    shown = text_of(boss, page_of(agent))
    assert "# not a heading\necho &#x27;&lt;b&gt;&#x27;" in shown


# --- how it has been doing ------------------------------------------------------------------


def test_rates_percentiles_tokens_and_cost_are_shown_by_day(boss: Client, fleet: Fleet):
    agent = fleet.agent()
    many_runs(agent, 20, ["succeeded", "succeeded", "succeeded", "failed"])
    today = utc_now().date()
    Usage.objects.create(
        tenant=fleet.tenant, agent=agent, day=today, tokens=12_345, cost_usd=Decimal("1.25")
    )
    history = history_of(agent, utc_now())
    assert (history.rate, history.p50, history.p95) == ("75.0 %", "10.0 s", "19.0 s")
    assert history.rows[0] == {
        "day": f"{today:%Y-%m-%d}",
        "runs": "20",
        "succeeded": "15",
        "p50": "10.0 s",
        "p95": "19.0 s",
        "tokens": "12,345",
        "cost": "$1.25",
    }
    shown = text_of(boss, page_of(agent))
    assert shown.count('role="img"') == 4
    assert shown.count("<rect") == 6


def used(agent: Agent, days_ago: int, tokens: int, cost: str) -> None:
    day = utc_now().date() - timedelta(days=days_ago)
    whose = {"tenant": agent.tenant, "agent": agent}
    Usage.objects.create(**whose, day=day, tokens=tokens, cost_usd=Decimal(cost))


def test_what_the_days_took_in_all_stands_beside_the_percentiles(boss: Client, fleet: Fleet):
    agent = fleet.agent()
    used(agent, 0, 12_000, "1200.25")
    used(agent, 13, 345, "0.5")
    used(agent, 14, 99, "7")
    figures = text_of(boss, part(agent, "history")).partition("<figure")[0]
    for words, figure in (("Tokens", "12,345"), ("Cost", "$1,200.75")):
        assert f'<dt>{words}</dt><dd class="dv-figure">{figure}</dd>' in figures


def test_cost_is_drawn_by_day_as_tokens_are(fleet: Fleet):
    agent = fleet.agent()
    used(agent, 1, 10, "0.002")
    used(agent, 0, 20, "0.004")
    *_, tokens, cost = history_of(agent, utc_now()).charts
    assert (cost.title, cost.top) == ("Cost", "$0.0040")
    assert [bar.height for bar in cost.bars] == pytest.approx([bar.height for bar in tokens.bars])
    assert len(cost.bars) == 2


def test_without_any_cost_there_is_no_chart_of_it(fleet: Fleet):
    agent = fleet.agent()
    used(agent, 0, 20, "0")
    titles = [chart.title for chart in history_of(agent, utc_now()).charts]
    assert titles[-1] == "Tokens"


def test_an_agent_that_never_ran_has_no_rate_and_empty_charts(boss: Client, fleet: Fleet):
    shown = text_of(boss, page_of(fleet.agent()))
    assert "No runs yet." in shown
    assert "<rect" not in shown


def test_a_long_history_costs_no_more_queries_and_is_read_by_its_end_alone(
    boss: Client, fleet: Fleet
):
    agent = fleet.agent()
    many_runs(agent, 3)
    few = queries_of(boss, page_of(agent))
    many_runs(agent, MOST_RUNS + 500, ["failed"])
    with CaptureQueriesContext(connection) as queries:
        history = history_of(Agent.objects.select_related("tenant").get(pk=agent.pk), utc_now())
    assert len(queries) == 3
    assert (history.summary.runs, history.summary.succeeded) == (MOST_RUNS, 0)
    assert history.since
    assert queries_of(boss, page_of(agent)) == few <= 20


@pytest.mark.parametrize("stacked", [True, False])
def test_no_bar_leaves_its_chart(stacked: bool):
    columns = [ChartColumn(str(n), "", (("a", n), ("b", 2 * n))) for n in range(14)]
    drawn = chart("Runs", "39", columns, stacked=stacked)
    assert len(drawn.bars) == 26
    for bar in drawn.bars:
        assert bar.x >= 0
        assert bar.x + bar.width <= WIDTH
        assert bar.y >= 0
        assert bar.y + bar.height <= HEIGHT + 0.01
