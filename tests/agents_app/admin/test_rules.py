"""The pages of the rules, silence, and the state of the rules on every page."""

from datetime import UTC, datetime, timedelta

import pytest
from django.contrib.auth.models import User
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.urls import reverse

from agents_app.conf import CONF
from agents_app.models import RuleBook, RuleState, RunEvent
from tests.agents_app.fleet import Fleet

RULES = reverse("admin:agents_app_rulestate_changelist")
EVIL = "<script>alert(1)</script>"


def shown(client: Client, url: str = RULES) -> str:
    response = client.get(url)
    assert response.status_code == 200, (url, response.status_code)
    return response.content.decode()


def rule(fleet: Fleet, text: str, **columns: object) -> RuleState:
    name = text[1 : text.index("]")]
    due = datetime.now(UTC) + timedelta(minutes=5)
    values = {"line": 1, "next_due_at": due, **columns}
    return RuleState.objects.create(tenant=fleet.tenant, name=name, text=text, **values)


def file_act(verb: str) -> str:
    return reverse("admin:agents_app_rulestate_file_act", args=[verb])


# --- the table ------------------------------------------------------------------------------


def test_without_rules_the_page_says_how_to_write_one(boss: Client):
    page = shown(boss)
    assert "No rules yet" in page
    assert "SCH --" in page


def test_rules_that_beat_has_not_read_yet_are_announced(boss: Client):
    CONF.project.mkdir(parents=True, exist_ok=True)
    file = CONF.project / "scheduler.rules"
    file.write_text("every 1m => summon forge")
    try:
        page = shown(boss)
    finally:
        file.unlink()
    assert "1 rule in the file, not loaded yet: is Drover running?" in page
    assert "No rules yet" not in page


def test_the_table_has_each_rule_with_its_state(boss: Client, fleet: Fleet):
    rule(fleet, "[keep] every 1m if not alive(forge) => summon forge", status="skip")
    reason = f"exit code 3 {EVIL}"
    rule(
        fleet,
        f'[{EVIL}] at 0 9 * * 1 => run "{EVIL}"',
        line=2,
        status="backoff",
        reason=reason,
        failures=3,
    )
    page = shown(boss)
    for text in (
        "keep",
        "every 1m",
        "not alive(forge)",
        "summon forge",
        "skip",
        "!3 bk",
        "in 4 min",
    ):
        assert text in page
    assert EVIL not in page
    assert "SCH 2 !1" in page and "dv-sch-wait" in page


def test_lines_that_are_no_rules_are_shown_with_their_place(boss: Client, fleet: Fleet):
    error = {"code": "bad_duration", "line": 3, "column": 7, "expected": "5m", "raw": EVIL}
    RuleBook.objects.create(
        tenant=fleet.tenant, errors=[{**error, "problem": '"5x" is no duration'}]
    )
    page = shown(boss)
    assert "&quot;5x&quot; is no duration (expected 5m)" in page
    assert "&lt;script&gt;alert(1)" in page
    assert EVIL not in page
    assert ">SCH 0 !1</a>" in page and "Scheduler rules: 0 active, 1 line with errors" in page
    assert "dv-sch-wait" in page


def test_rules_that_are_not_evaluated_are_an_alarm(boss: Client, fleet: Fleet):
    rule(fleet, "[keep] every 1m => summon forge")
    RuleBook.objects.create(tenant=fleet.tenant, disabled_at=datetime.now(UTC), crash="it broke")
    page = shown(boss)
    assert "Rules are disabled" in page and "it broke" in page
    assert "SCH X" in page and "dv-sch-bad" in page


def test_the_page_of_a_rule_says_whether_it_would_fire(boss: Client, fleet: Fleet):
    fleet.agent("forge")
    row = rule(
        fleet,
        "[keep] every 1m if alive(forge) => pause forge",
        next_due_at=datetime.now(UTC),
        tail=f"last line {EVIL}",
        exit_code=3,
    )
    page = shown(boss, reverse("admin:agents_app_rulestate_change", args=[row.pk]))
    assert "Would not fire now: forge is not alive." in page
    assert "last line &lt;script" in page and "exit code 3" in page
    assert EVIL not in page


def test_a_rule_without_a_name_has_a_page(boss: Client, fleet: Fleet):
    """Its text does not have the name, and of two that say the same one has a number."""
    text = "every 1m => pause forge"
    row = RuleState.objects.create(
        tenant=fleet.tenant, name="every-1m-2", text=text, line=2, next_due_at=datetime.now(UTC)
    )
    page = shown(boss, reverse("admin:agents_app_rulestate_change", args=[row.pk]))
    assert "Would fire now." in page


def test_a_rule_that_is_not_understood_any_more_can_be_seen(boss: Client, fleet: Fleet):
    row = rule(fleet, "[old] every 1m => dance")
    assert "not understood" in shown(boss)
    page = shown(boss, reverse("admin:agents_app_rulestate_change", args=[row.pk]))
    assert "this version of Drover cannot read the rule" in page


def test_the_number_of_queries_does_not_grow_with_the_rules(boss: Client, fleet: Fleet):
    def queries() -> int:
        with CaptureQueriesContext(
            connection,
        ) as seen:
            shown(boss)
        return len(seen)

    shown(boss)  # stores when the session was used
    rule(fleet, "[first] every 1m => summon forge")
    few = queries()
    for number in range(30):
        rule(fleet, f"[r{number}] every 1m => summon forge", line=number + 2)
    assert queries() == few


# --- silence --------------------------------------------------------------------------------


def test_messages_are_silenced_until_a_time_and_heard_again(boss: Client, fleet: Fleet):
    assert "Silence messages" in shown(boss)
    page = boss.post(file_act("silence"), {"until": "in 2 hours"}, follow=True).content.decode()
    assert "Messages of rules silenced until" in page
    assert "Messages are silenced until" in page and "(by ann)" in page
    until = RuleBook.objects.get().silent_until
    assert until is not None
    assert timedelta(minutes=119) < until - datetime.now(UTC) <= timedelta(hours=2)
    assert "Silence messages" not in page
    boss.post(file_act("end_silence"))
    assert "Messages are silenced" not in shown(boss)
    noted = RunEvent.objects.filter(name__startswith="rules.").order_by("pk")
    assert [event.name for event in noted] == ["rules.silenced", "rules.heard"]


@pytest.mark.parametrize("until", ["nonsense", "every day", "2020-01-01T00:00:00Z"])
def test_an_invalid_end_of_the_silence_is_refused(boss: Client, fleet: Fleet, until: str):
    page = boss.post(file_act("silence"), {"until": until}, follow=True).content.decode()
    assert "Messages of rules silenced" not in page
    assert not RuleBook.objects.exists()


def test_a_user_who_may_only_view_sees_the_rules_and_no_button(visitor: Client, fleet: Fleet):
    rule(fleet, "[keep] every 1m => summon forge")
    page = shown(visitor)
    assert "keep" in page and "SCH 1" in page
    assert "Silence messages" not in page
    assert visitor.post(file_act("silence")).status_code == 403
    assert not RuleBook.objects.exists()


def test_acts_are_posted_and_known(boss: Client, fleet: Fleet):
    assert boss.get(file_act("silence")).status_code == 405
    assert boss.post(file_act("shout")).status_code == 404


# --- on every page --------------------------------------------------------------------------


def test_every_page_shows_the_state_of_the_rules(boss: Client, fleet: Fleet):
    rule(fleet, "[keep] every 1m => summon forge", status="ok")
    for url in (reverse("admin:index"), reverse("admin:agents_app_agent_changelist")):
        page = shown(boss, url)
        assert f'href="{RULES}"' in page
        assert ">SCH 1</a>" in page
    assert shown(boss, reverse("admin:agents_app_rulestate_indicator")).endswith(">SCH 1</a>")


def test_a_rule_that_has_left_the_file_is_not_counted(boss: Client, fleet: Fleet):
    rule(fleet, "[gone] every 1m => summon forge", next_due_at=None, status="run")
    assert "SCH --" in shown(boss)


def test_a_user_who_may_not_view_rules_sees_no_state_of_them(fleet: Fleet):
    user = User.objects.create_user("temp", password="secret", is_staff=True)
    client = Client()
    client.force_login(user)
    assert "SCH" not in shown(client, reverse("admin:index"))
    assert client.get(RULES).status_code == 403
    assert client.get(reverse("admin:agents_app_rulestate_indicator")).status_code == 403
