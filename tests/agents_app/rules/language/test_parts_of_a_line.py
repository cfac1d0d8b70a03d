"""The three parts of a rule: valid texts, and the errors of invalid ones."""

import pytest

from agents_app.rules.language.rule import (
    AliveCondition,
    At,
    BudgetCondition,
    Every,
    FailedCondition,
    IdleCondition,
    Pause,
    QueueCondition,
    Release,
    Resume,
    Scale,
    SendMessage,
    ShellCommand,
    Summon,
)
from tests.agents_app.rules.language.parse_one import parsed, refusal

RUN = ShellCommand("x")


# --- triggers -------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("written", "trigger"),
    [
        ("every 10s", Every(10)),
        ("every 007m", Every(420)),
        ("every 36500d", Every(36_500 * 86_400)),
        ("at 14:30", At("30 14 * * *")),
        ("at 23:59", At("59 23 * * *")),
        ("at 0:00", At("0 0 * * *")),
        ("at Wed 08:15", At("15 8 * * 3")),
        ("at Thu 8:15", At("15 8 * * 4")),
        ("at sun 00:00", At("0 0 * * 0")),
        ("at SAT 00:00", At("0 0 * * 6")),
        ("at 0 9 * * MON-FRI", At("0 9 * * MON-FRI")),
        ("at 0 9 * jan 1", At("0 9 * jan 1")),
        ("at 0\t9  * *\t1", At("0 9 * * 1")),
        ("at 0 9 * * 5#2", At("0 9 * * 5#2")),
        ("at 0 9 L * *", At("0 9 L * *")),
        ("at @daily", At("0 0 * * *")),
    ],
)
def test_a_trigger_is_an_interval_or_five_cron_fields(written: str, trigger: Every | At):
    assert parsed(f'{written} => run "x"').trigger == trigger


@pytest.mark.parametrize(
    ("written", "code", "column"),
    [
        ("every 5", "bad_duration", 7),
        ("every m", "bad_duration", 7),
        ("every 5 m", "bad_duration", 7),
        ("every 5M", "bad_duration", 7),
        ("every five minutes", "bad_duration", 7),
        ("every +5m", "bad_duration", 7),
        ("every \uff15m", "bad_duration", 7),
        ("every 5m,", "bad_duration", 7),
        ("every 36501d", "bad_duration", 7),
        (f"every {'9' * 5000}s", "bad_duration", 7),
        ("every 5m 5m", "missing_arrow", 10),
        ("every if alive(a)", "bad_duration", 7),
        ("Every 5m", "bad_trigger", 1),
        ("5m", "bad_trigger", 1),
        ("0 0 * * *", "bad_trigger", 1),
        ("at 14:3", "bad_time", 4),
        ("at 14.30", "bad_time", 4),
        ("at 2pm", "bad_time", 4),
        ("at 14:30:00", "bad_time", 4),
        ("at ١٤:٣٠", "bad_time", 4),
        ("at Sun 24:00", "bad_time", 8),
        ("at Sunday 10:00", "bad_time", 4),
        ("at 10:00 Sun", "bad_time", 4),
        ("at 0 0", "bad_time", 4),
        ("at * * * *", "bad_cron", 4),
        ("at 0 0 0 * *", "bad_cron", 8),
        ("at 0 0 32 * *", "bad_cron", 8),
        ("at 0 0 * 13 *", "bad_cron", 10),
        ("at 0 0 * * 8", "bad_cron", 12),
        ("at 0 0 30 2 *", "bad_cron", 4),
        ("at */0 * * * *", "bad_cron", 4),
        ("at 5-1 * * * *", "bad_cron", 4),
        ("at @reboot", "bad_cron", 4),
        ("at 14:30 if", "bad_condition", 13),
    ],
)
def test_an_invalid_trigger_is_refused_with_its_position(written: str, code: str, column: int):
    error = refusal(f'{written} => run "x"')
    assert (error.code, error.column) == (code, column)


# --- conditions -----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("written", "conditions"),
    [
        ("alive(forge)", (AliveCondition(("forge",)),)),
        ("not alive(forge,beacon)", (AliveCondition(("forge", "beacon"), negate=True),)),
        ("not\talive (forge)", (AliveCondition(("forge",), negate=True),)),
        ("alive(forge,forge)", (AliveCondition(("forge",)),)),
        ("idle(any)>4h", (IdleCondition("any", 14_400),)),
        ("idle( all ) > 30s", (IdleCondition("all", 30),)),
        ("idle(a,b) > 1d", (IdleCondition(("a", "b"), 86_400),)),
        ("queue(forge) > 5", (QueueCondition("forge", 5),)),
        ("queue(forge) > 0", (QueueCondition("forge", 0),)),
        ("failed(forge) > 2 in 1h", (FailedCondition("forge", 2, 3600),)),
        ("budget(forge) > 80%", (BudgetCondition("forge", 80),)),
        ("budget(forge) > 80 %", (BudgetCondition("forge", 80),)),
        ("alive(a) and queue(b) > 1", (AliveCondition(("a",)), QueueCondition("b", 1))),
        (
            "not alive(a) and not alive(b) and idle(c) > 1m",
            (AliveCondition(("a",), True), AliveCondition(("b",), True), IdleCondition(("c",), 60)),
        ),
    ],
)
def test_conditions_are_predicates_joined_with_and(written: str, conditions: tuple):
    assert parsed(f'every 1m if {written} => run "x"').conditions == conditions
    assert parsed(f'at 3:00 if {written} => run "x"').conditions == conditions


@pytest.mark.parametrize(
    ("written", "code", "column"),
    [
        ("alive", "bad_condition", 13),
        ("alive(", "bad_agent", 20),
        ("alive(forge", "bad_condition", 25),
        ("alive forge", "bad_condition", 13),
        ("alive(forge,)", "bad_agent", 25),
        ("alive(,forge)", "bad_agent", 19),
        ("alive(forge beacon)", "bad_condition", 25),
        ("alive(Forge)", "bad_agent", 19),
        ("alive(default)", "bad_agent", 19),
        ("alive(for_ge)", "bad_agent", 19),
        ('alive("forge")', "bad_agent", 19),
        ("alive({idle})", "bad_agent", 19),
        ("alive(forge) > 5m", "missing_arrow", 26),
        ("Alive(forge)", "bad_condition", 13),
        ("not", "bad_condition", 13),
        ("not not alive(forge)", "bad_condition", 13),
        ("not idle(any) > 4h", "bad_condition", 13),
        ("idle() > 4h", "bad_agent", 18),
        ("idle(any) >", "bad_duration", 25),
        ("idle(any) 4h", "bad_condition", 23),
        ("idle(any) < 4h", "bad_condition", 23),
        ("idle(any) >= 4h", "bad_condition", 23),
        ("idle(any) > 0s", "bad_duration", 25),
        ("idle(any) > 1.5h", "bad_duration", 25),
        ("idle(any) > 4h 5m", "missing_arrow", 28),
        ("idle(any,forge) > 4h", "bad_target", 18),
        ("idle(all,any) > 4h", "bad_target", 18),
        ("alive(a) or alive(b)", "missing_arrow", 22),
        ("alive(a) and", "bad_condition", 26),
        ("and alive(a)", "bad_condition", 13),
        ("alive(a) and alive(b)", "two_alives", 25),
        ("idle(a) > 1m and idle(b) > 1m", "two_idles", 29),
        ("queue(a,b) > 1", "bad_condition", 20),
        ("queue(a) > -1", "bad_condition", 24),
        ("queue(a) > 5m", "bad_condition", 24),
        ("queue(a) > 9999999999999999999999", "bad_number", 24),
        ("failed(a) > 2", "bad_condition", 27),
        ("failed(a) > 2 in", "bad_duration", 30),
        ("budget(a) > 80", "bad_condition", 28),
        ("budget(a) > 80%%", "bad_condition", 27),
    ],
)
def test_an_invalid_condition_is_refused_with_its_position(written: str, code: str, column: int):
    error = refusal(f'every 1m if {written} => run "x"')
    assert (error.code, error.column) == (code, column)


# --- actions --------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("written", "action"),
    [
        ('msg all "hi"', SendMessage("all", "hi")),
        ('msg a,b "hi"', SendMessage(("a", "b"), "hi")),
        ('msg a , b "hi"', SendMessage(("a", "b"), "hi")),
        ('msg any "hi"', SendMessage(("any",), "hi")),
        (r'msg all "a \\ b"', SendMessage("all", r"a \ b")),
        (r'run "grep \d+ \$HOME"', ShellCommand(r"grep \d+ \$HOME")),
        (r'run "echo \\\"x\\\""', ShellCommand(r"echo \"x\"")),
        ("run \"cat <<< '{a}' # no comment\"", ShellCommand("cat <<< '{a}' # no comment")),
        ('run "x" # "a comment"', RUN),
        ("summon forge", Summon("forge")),
        ("summon all", Summon("all")),
        ('summon forge "go on => now"', Summon("forge", "go on => now")),
        ('msg all "grüße 🐑"', SendMessage("all", "grüße 🐑")),
        ('msg all "{not} {a} {template"', SendMessage("all", "{not} {a} {template")),
        ('run "echo {idle}"', ShellCommand("echo {idle}")),
        ("release forge,beacon", Release(("forge", "beacon"))),
        ("release forge # enough", Release(("forge",))),
        ("pause all", Pause("all")),
        ("resume forge", Resume(("forge",))),
        ("scale forge 0", Scale("forge", 0)),
    ],
)
def test_an_action_is_a_verb_and_its_arguments(written: str, action: object):
    assert parsed(f"every 5m => {written}").action == action


@pytest.mark.parametrize(
    ("written", "code", "column"),
    [
        ("", "bad_action", 12),
        ("dance forge", "bad_action", 13),
        ("Run", "bad_action", 13),
        ('"x"', "bad_action", 13),
        ("# run it", "bad_action", 12),
        ('msg "hi"', "bad_agent", 17),
        ("msg all", "bad_text", 20),
        ("msg all hi", "bad_text", 21),
        ('msg all"hi"', "bad_text", 20),
        ('msg all ""', "empty_text", 21),
        ('msg all "hi" there', "unexpected_text", 26),
        ('msg all "hi""there"', "unexpected_text", 25),
        ('msg all "hi"#there', "unexpected_text", 25),
        (r'msg all "hi\"', "open_quote", 21),
        ('msg all forge "hi"', "bad_text", 21),
        ('msg all,forge "hi"', "bad_target", 17),
        ('msg a,,b "hi"', "bad_agent", 19),
        ('msg Forge "hi"', "bad_agent", 17),
        ("msg all “hi”", "bad_text", 21),
        ('summon forge ""', "empty_text", 26),
        ("summon {idle}", "bad_agent", 20),
        ('summon "forge"', "bad_agent", 20),
        ("release", "bad_agent", 20),
        ("release forge beacon", "unexpected_text", 27),
        ("release forge,", "bad_agent", 27),
        ('run "   "', "empty_text", 17),
        ("run 'ls'", "bad_text", 17),
        ('run"ls"', "bad_text", 16),
        ('run "a" "b"', "unexpected_text", 21),
        ('run "a" => run "b"', "unexpected_text", 21),
        ("pause", "bad_agent", 18),
        ("scale forge", "bad_number", 24),
        ("scale forge many", "bad_number", 25),
        ("scale forge 10001", "bad_number", 25),
        ("scale forge 2 3", "unexpected_text", 27),
        ("scale all,forge 2", "bad_number", 22),
        ('msg all "{idle} of us"', "needs_idle", 22),
        ('summon forge "{idle_duration}"', "needs_idle", 27),
        ("pause {idle}", "needs_idle", 19),
    ],
)
def test_an_invalid_action_is_refused_with_its_position(written: str, code: str, column: int):
    error = refusal(f"every 5m => {written}")
    assert (error.code, error.column) == (code, column)


@pytest.mark.parametrize(
    ("written", "problem"),
    [
        ("every 1m => sumon tick", 'unknown action "sumon": did you mean "summon"?'),
        ("every 1m => Run", 'unknown action "Run": did you mean "run"?'),
        ("every 1m => dance forge", 'unknown action "dance"'),
        ("evry 1m => pause all", 'unknown trigger "evry": did you mean "every"?'),
        ("every 1m if ideal(any) > 4h => pause all", 'unknown condition "ideal": did you mean'),
        ("every 1m if alive forge => pause all", "alive needs an agent in parentheses"),
        ("every 1m if => pause all", "the condition is missing"),
        ("every 1m if not idle(any) > 1h => pause all", '"not" cannot be used with idle'),
        ("every 1m => scale forge 10001", "10001 is too many copies"),
    ],
)
def test_an_error_names_the_problem_and_suggests_a_near_miss(written: str, problem: str):
    assert refusal(written).problem.startswith(problem)


def test_the_idle_agents_can_be_targets_of_a_rule_with_an_idle_condition():
    head = "every 5m if alive(a) and idle(any) > 4h =>"
    assert parsed(f"{head} pause {{idle}}").action == Pause("{idle}")
    action = parsed(f'{head} msg {{idle}} "{{idle}} for {{idle_duration}}"').action
    assert action == SendMessage("{idle}", "{idle} for {idle_duration}")
    assert refusal(f"{head} release {{idle}},a").code == "bad_target"
