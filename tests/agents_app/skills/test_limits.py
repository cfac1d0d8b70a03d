"""Malicious files are refused quickly and without much memory."""

import json
import time
import tracemalloc

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from agents_app.skills.errors import SkillError
from tests.agents_app.skills.reading import agent, problem, problems, project, skill

BOMB = "a: &a [x,x,x,x,x,x,x,x,x]\n" + "".join(
    f"{b}: &{b} [{','.join([f'*{a}'] * 9)}]\n" for a, b in zip("abcdefgh", "bcdefghi", strict=True)
)
HURTFUL_YAML = {
    "alias bomb": (BOMB, "the anchor &a is not allowed"),
    "deep lists": ("a: " + "[" * 60_000, "is nested deeper than 20 levels"),
    "deep maps": ("a: " + "{a: " * 15_000, "is nested deeper than 20 levels"),
    "deep dashes": ("- " * 30_000, "is nested deeper than 20 levels"),
    "many keys": ("\n".join(f"k{i}: v" for i in range(6_000)), "holds more than 5000 values"),
    "many items": ("a: [" + "1," * 30_000 + "]", "holds more than 5000 values"),
    "an endless number": ("scale: " + "9" * 60_000, "is not a finite number"),
    "an endless fraction": ("timeout: 1." + "9" * 60_000, ""),
}
HURTFUL_TOML = {
    "deep lists": ("x=" + "[" * 65_000, "is nested deeper than 20 levels"),
    "deep tables": ("x=" + "{a=" * 21_000, "is nested deeper than 20 levels"),
    "a dotted key": ("a." * 32_000 + "a=1", "is nested deeper than 20 levels"),
    "a dotted table": ("[" + "a." * 32_000 + "a]", "is nested deeper than 20 levels"),
    "a dotted inline key": ("x={" + "'a' ." * 12_000 + "a=1}", "is nested deeper than 20 levels"),
    "thirty levels": ("params." + "a." * 30 + "a=1", "is nested deeper than 20 levels"),
    "many values": ("x=[" + "1," * 30_000 + "]", "holds more than 5000 values"),
    "an endless number": ("scale=" + "9" * 60_000, "is not TOML"),
}


@pytest.mark.parametrize(("text", "reason"), HURTFUL_YAML.values(), ids=HURTFUL_YAML)
@pytest.mark.fault("F69")
def test_a_malicious_frontmatter_is_refused_at_once(text, reason):
    started = time.process_time()
    found = problems(agent, text)
    assert time.process_time() - started < 0.5
    assert reason in found[0] if reason else not found


@pytest.mark.parametrize(("text", "reason"), HURTFUL_TOML.values(), ids=HURTFUL_TOML)
def test_a_malicious_config_is_refused_at_once(text, reason):
    started = time.process_time()
    assert reason in problem(project, text)
    assert time.process_time() - started < 0.5


def test_nesting_and_size_within_the_limits_are_accepted():
    assert agent("params: {a: " + "[" * 17 + "]" * 17 + "}").params
    assert len(agent("\n".join(["params:", *(f" k{i}: v" for i in range(2_400))])).params) == 2_400


def test_64_kib_is_the_most_that_is_read():
    assert len(skill("x" * 65_536).instructions) == 65_536
    assert problem(skill, "x" * 65_537) == (
        "SKILL.md: has 65537 bytes; at most 65536 (64 KiB) are read. Move long texts to other files"
    )
    assert "65538 bytes" in problem(skill, "é" * 32_769)
    assert "65537 bytes" in problem(project, "#" * 65_537)


@pytest.mark.fault("F69")
def test_refusing_a_yaml_bomb_costs_little_memory():
    problems(agent, BOMB)
    tracemalloc.start()
    for text, _ in HURTFUL_YAML.values():
        problems(agent, text)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 20_000_000


YAML_PIECES = [*"a1:-[]{},*!'\"|>#?@%\\é\u2028", "schedule", "schedules", "runtime", "metadata"]
YAML_PIECES += ["scale", "env", "&a ", "5m", "---", "...", "null", "true", "1e999"]
TOML_PIECES = [*"a1=.[]{}\"',#é", "scale", "webhooks", "gateway", "[[", "]]", '"""', "1e999"]
TOML_PIECES += ["nan", "true", "2026-01-01", "\\u0000"]
BLANKS = [" ", "  ", "\n", "\n", "\t", "\r\n", ": "]
YAML_LIKE = st.lists(st.sampled_from(YAML_PIECES + BLANKS), max_size=40).map("".join)
TOML_LIKE = st.lists(st.sampled_from(TOML_PIECES + BLANKS), max_size=40).map("".join)


@settings(max_examples=300, deadline=None)
@given(st.one_of(st.text(max_size=200), YAML_LIKE))
def test_any_text_is_an_agent_or_a_skill_error(text):
    for parse in (skill, agent):
        try:
            parse(text)
        except SkillError as error:
            assert all(one.reason and one.path for one in error.each)


@settings(max_examples=300, deadline=None)
@given(st.one_of(st.text(max_size=200), TOML_LIKE))
def test_any_text_is_a_config_or_a_skill_error(text):
    try:
        project(text)
        skill("", config=text)
    except SkillError as error:
        assert all(one.reason and one.path for one in error.each)


SCALARS = st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False)
VALUES = st.recursive(
    SCALARS | st.text(max_size=5),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3)
    ),
    max_leaves=8,
)
FIELDS = ["command", "schedule", "schedules", "webhooks", "scale", "timeout", "credentials", "env"]
FIELDS += ["runtime", "params", "hooks", "on_lost", "metadata", "timezone", "allowed-tools", "name"]


@settings(max_examples=300, deadline=None)
@given(st.dictionaries(st.sampled_from(FIELDS), VALUES, max_size=4))
def test_any_values_of_the_fields_are_an_agent_or_a_skill_error(fields):
    try:
        agent("\n".join(f"{name}: {json.dumps(value)}" for name, value in fields.items()))
    except SkillError as error:
        assert all(one.reason and one.path for one in error.each)


PARTS = {
    "schedules": ["type", "interval", "cron", "prompt", "timezone", "overlap", "jitter", "enabled"],
    "runtime": ["type", "run_as", "image", "memory", "cpus", "network", "pids_limit"],
    "hooks": ["pre", "post", "after_run", "on_error"],
    "webhooks": ["source", "filters", "labels"],
}
WORDS = st.sampled_from(["interval", "cron", "5m", "@daily", "5%", "11%", "1e9", "UTC", "queue"])


@st.composite
def nested(draw):
    field = draw(st.sampled_from(sorted(PARTS)))
    table = draw(st.dictionaries(st.sampled_from(PARTS[field]), VALUES | WORDS, min_size=1))
    return field, {"schedules": {"a": table}, "webhooks": [table]}.get(field, table)


@settings(max_examples=300, deadline=None)
@given(nested())
def test_any_values_within_a_table_are_an_agent_or_a_skill_error(written):
    field, table = written
    try:
        agent(f"{field}: {json.dumps(table)}")
    except SkillError as error:
        assert all(one.reason and one.path for one in error.each)
