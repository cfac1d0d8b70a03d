"""What doctor says of the rules: of their file as it is on disk, and of what became of them."""

from pathlib import Path

from agents_app.maintenance import fleet_checks
from agents_app.models import RuleBook, RuleState
from tests.agents_app.fleet import NOON, Fleet, at
from tests.agents_app.management.test_doctor import findings


def test_lines_of_the_rules_that_are_none_are_found(fleet: Fleet, project: Path):
    fleet.agent("forge")
    rules = project / "scheduler.rules"
    rules.write_text("[a] every 1m => summon forge\nevery 5x => pause forge\n[a] at noon => x\n")
    found = findings(fleet_checks.check_rules)
    assert [verdict for verdict, _ in found] == ["wrong", "wrong", "ok"]
    assert found[0][1].startswith('line 2, column 7: "5x" is not a valid duration (expected ')
    assert found[-1] == ("ok", "1 in scheduler.rules")


def test_rules_that_are_not_evaluated_or_silent_are_found(fleet: Fleet, project: Path):
    RuleBook.objects.create(
        tenant=fleet.tenant,
        disabled_at=NOON,
        crash="it broke",
        silenced_at=NOON,
        silenced_by="ann",
        silent_until=at(hours=1),
    )
    assert findings(fleet_checks.check_rules) == [
        ("wrong", "no rule is evaluated: it broke"),
        ("warning", "ann silenced the messages of rules until 2026-03-02 13:00 UTC"),
        ("ok", "0 in scheduler.rules"),
    ]


def test_rules_that_may_not_mean_what_they_say_are_found_by_their_line(fleet: Fleet, project: Path):
    fleet.agent("forge")
    fleet.agent("gone", removed_at=NOON)
    lines = ["# ours", "every 1m => summon forge", "every 5s => summon ghost", "at noon => x"]
    (project / "scheduler.rules").write_text("\n".join([*lines, "every 1m => pause gone"]))
    _, *found = findings(fleet_checks.check_rules)
    often = "rules are evaluated every 10 s: the rule cannot fire more often"
    assert found == [
        ("warning", f"line 3: {often}"),
        ("warning", "line 3: there is no agent ghost"),
        ("warning", "line 5: there is no agent gone"),
        ("ok", "3 in scheduler.rules"),
    ]


def test_rules_that_are_held_back_after_failures_are_found(fleet: Fleet, project: Path):
    def rule(name: str, **columns: object) -> None:
        values = {"line": 1, "next_due_at": NOON, "status": "backoff", "reason": "exit code 3"}
        RuleState.objects.create(tenant=fleet.tenant, name=name, **{**values, **columns})

    rule("often", failures=3, line=2)
    rule("once", failures=1)
    rule("well", status="ok")
    rule("left the file", failures=1, next_due_at=None)
    assert findings(fleet_checks.check_rules) == [
        ("warning", "once failed once and waits: exit code 3"),
        ("warning", "often failed 3 times in a row and waits: exit code 3"),
        ("ok", "0 in scheduler.rules"),
    ]


def test_of_many_rules_with_the_same_trouble_the_first_are_named(fleet: Fleet, project: Path):
    lines = (f"[{number}] every 1m => summon ghost" for number in range(12))
    (project / "scheduler.rules").write_text("\n".join(lines))
    *named, more, ok = findings(fleet_checks.check_rules)
    assert [detail.partition(":")[0] for _, detail in named] == [f"line {n}" for n in range(1, 11)]
    assert (more, ok) == (("warning", "and 2 more of this kind"), ("ok", "12 in scheduler.rules"))
