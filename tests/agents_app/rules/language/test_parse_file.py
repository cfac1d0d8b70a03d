"""A file of rules: an error in one line does not affect the other lines."""

import pytest

from agents_app.rules.language.parse import parse_file

KEEP = "[keep] every 1m if not alive(forge) => summon forge"
TICK = 'every 30s => msg all "tick"'


def names(text: str) -> list[str]:
    return [rule.name for rule in parse_file(text).rules]


@pytest.mark.parametrize("end", ["\n", "\r\n", "\r"])
def test_lines_end_as_any_editor_ends_them(end: str):
    file = parse_file("\ufeff" + end.join([KEEP, "", "# note", "[b] nonsense", TICK, ""]))
    assert [rule.line for rule in file.rules] == [1, 5]
    assert [(error.line, error.code) for error in file.errors] == [(4, "bad_trigger")]


def test_the_first_rule_of_a_name_wins():
    file = parse_file(f"{KEEP}\n[keep] every 2m => release forge\n[keep] every 3m => pause all")
    assert [rule.line for rule in file.rules] == [1]
    assert [(error.line, error.code) for error in file.errors] == [
        (2, "duplicate_name"),
        (3, "duplicate_name"),
    ]
    assert "line 1" in file.errors[0].problem


def test_a_line_that_does_not_parse_takes_no_name():
    file = parse_file(f"[keep] every 5x => release forge\n{KEEP}")
    assert [rule.line for rule in file.rules] == [2]
    assert [error.code for error in file.errors] == ["bad_duration"]


def test_names_are_case_sensitive():
    assert names("[a] every 1m => pause x\n[A] every 1m => pause x") == ["a", "A"]


def test_a_rule_without_a_name_is_named_after_what_it_does():
    assert names(TICK)[0].startswith("every-30s-msg-all-")
    assert names("at 0 9 * * 1-5 => summon forge")[0].startswith("at-0-9-1-5-summon-forge-")


def test_automatic_names_survive_an_edit_around_them():
    before = names(f"{TICK}\n{KEEP}")[0]
    after = names(f'# new\n[other] every 1m => pause x\nevery 30s => msg all "tock"\n{TICK}')
    assert after[-1] == before
    assert len(set(after)) == 3


def test_automatic_names_do_not_depend_on_blanks_or_comments():
    assert names(TICK) == names('  every\t30s =>  msg  all "tick"   # a note')
    assert names("at Sun 09:00 => pause x") == names("at 0 9 * * 0 => pause x")


def test_automatic_names_of_equal_rules_are_numbered():
    first, second, third = names(f"{TICK}\n{TICK}\n{TICK}")
    assert (second, third) == (f"{first}-2", f"{first}-3")


def test_a_written_name_wins_over_an_automatic_one():
    given = names(TICK)[0]
    assert names(f"{TICK}\n[{given}] every 1m => pause x") == [f"{given}-2", given]


def test_rules_that_differ_in_their_condition_alone_have_two_names():
    text = "every 1m if alive({}) => pause x"
    assert len(set(names(f"{text.format('a')}\n{text.format('b')}"))) == 2


def test_a_thousand_rules_are_read():
    file = parse_file(
        "\n".join(f"[r{n}] every 1m if alive(a{n}) => pause a{n}" for n in range(1000))
    )
    assert len(file.rules) == 1000
