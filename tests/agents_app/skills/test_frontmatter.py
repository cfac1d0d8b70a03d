from pathlib import Path

import pytest

from agents_app.skills.document import SourceText
from agents_app.skills.errors import SkillError
from agents_app.skills.frontmatter import read_frontmatter
from tests.agents_app.skills.reading import problem, skill


def split(text):
    document, body = read_frontmatter(SourceText(text, Path("SKILL.md")))
    return document.data, body


@pytest.mark.parametrize(
    ("text", "data", "body"),
    [
        ("no frontmatter\n", {}, "no frontmatter\n"),
        ("", {}, ""),
        ("---\nname: x\n---\n", {"name": "x"}, ""),
        ("---\nname: x\n---", {"name": "x"}, ""),
        ("---\n---\nBody", {}, "Body"),
        ("---\n# only a comment\n---\nBody", {}, "Body"),
        ("---\na: 1\n---\n\nBody\n", {"a": 1}, "\nBody\n"),
        ("\n\n---\na: 1\n---\nBody", {"a": 1}, "Body"),
        ("---  \na: 1\n---\t\nBody", {"a": 1}, "Body"),
        ("---\na: 1\n---\nabove\n---\nbelow", {"a": 1}, "above\n---\nbelow"),
        ('---\na: "x ---"\n---\nBody', {"a": "x ---"}, "Body"),
    ],
)
def test_a_file_is_split_at_its_rules(text, data, body):
    assert split(text) == (data, body)


def test_windows_line_ends_and_a_byte_order_mark_are_accepted():
    assert split("\ufeff---\r\na: 1\r\nb: two\r\n---\r\nBody\r\n") == (
        {"a": 1, "b": "two"},
        "Body\r\n",
    )


@pytest.mark.parametrize("text", ["---", "---\n", "---\nJust prose\n", "---\nprose\n---\nmore\n"])
def test_a_horizontal_rule_is_not_frontmatter(text):
    assert split(text) == ({}, text)


def test_frontmatter_that_is_never_closed_is_an_error_and_not_an_agent_without_fields():
    assert problem(skill, "\n---\nschedule: 5m\n\nDo it.\n") == (
        "SKILL.md:2: the frontmatter is not closed; add a line '---' below its last field"
    )


@pytest.mark.parametrize("text", ["---\na: [1\n---\n", "---\na: b: c\n---\n", "---\n\ta: 1\n---\n"])
def test_invalid_yaml_is_an_error(text):
    with pytest.raises(SkillError):
        split(text)


@pytest.mark.parametrize(
    ("written", "value"),
    [
        ("yes", "yes"),
        ("12:30", "12:30"),
        ("2026-01-01", "2026-01-01"),
        ("010", 10),
        ("0x1F", 31),
        ("-1.5e3", -1500.0),
        ("true", True),
        ("~", None),
        ("'5'", "5"),
        ("[1, {a: b}]", [1, {"a": "b"}]),
        ("1" * 30, float("1" * 30)),
    ],
)
def test_scalars_are_read_as_in_yaml_1_2(written, value):
    assert split(f"---\nkey: {written}\n---\n")[0] == {"key": value}


def test_a_key_is_the_text_that_was_written():
    assert split("---\non: 1\n1: 2\nnull: 3\n---\n")[0] == {"on": 1, "1": 2, "null": 3}


def test_the_body_is_the_agents_instructions():
    assert skill("---\nscale: 2\n---\n# Title\n\nText\n").instructions == "# Title\n\nText\n"


def test_a_file_without_frontmatter_is_an_agent_of_instructions_only():
    spec = skill("Count the sheep.\n")
    assert (spec.instructions, spec.schedules, spec.scale) == ("Count the sheep.\n", (), 1)
