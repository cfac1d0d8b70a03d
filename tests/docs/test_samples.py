"""Samples of files are read by the parsers that read the real files."""

import configparser
import json
from pathlib import Path
from typing import get_args

import pytest

from agents_app.rules.language.parse import parse_file
from agents_app.rules.language.rule import Action, Condition
from agents_app.skills import ProjectSpec
from agents_app.skills.document import SourceText
from agents_app.skills.parse import parse_project, parse_skill
from tests.docs.pages import Sample, samples

FILE = Path("sample")
LANGUAGES = {"sh", "markdown", "yaml", "toml", "rules", "json", "ini", "text", "mermaid", "python"}
NOTES = ("not run: ", "inside a run", "stops after ", "Generated from ")


def checked(*languages: str) -> list[Sample]:
    return [sample for sample in samples(*languages) if not sample.is_left_out]


@pytest.mark.parametrize("sample", samples(), ids=str)
def test_a_sample_names_its_language_and_what_is_special_about_it(sample: Sample):
    assert sample.language in LANGUAGES
    assert not sample.note or sample.note.startswith(NOTES)


@pytest.mark.parametrize("sample", checked("markdown"), ids=str)
def test_a_skill_of_the_documentation_is_a_valid_agent(sample: Sample):
    spec = parse_skill(SourceText(sample.text, FILE), name="sample")
    assert spec.command
    assert spec.instructions


@pytest.mark.parametrize("sample", checked("yaml"), ids=str)
def test_front_matter_of_the_documentation_is_a_valid_agent(sample: Sample):
    text = f"---\n{sample.text}---\nDo it.\n"
    spec = parse_skill(SourceText(text, FILE), name="sample", project=_project())
    assert spec.command


def _project() -> ProjectSpec:
    """With the source that the guide about webhooks declares."""
    (sample,) = (each for each in samples("toml") if "my-github" in each.text)
    return parse_project(SourceText(sample.text, FILE))


@pytest.mark.parametrize("sample", checked("toml"), ids=str)
def test_a_config_of_the_documentation_is_a_valid_project(sample: Sample):
    parse_project(SourceText(sample.text, FILE))


@pytest.mark.parametrize("sample", checked("rules"), ids=str)
def test_rules_of_the_documentation_are_valid(sample: Sample):
    read = parse_file(sample.text)
    assert read.errors == ()
    assert len(read.rules) == len(sample.text.splitlines())


def test_every_condition_and_action_of_rules_has_an_example():
    rules = [rule for sample in samples("rules") for rule in parse_file(sample.text).rules]
    assert {type(rule.action) for rule in rules} == set(get_args(Action))
    assert {type(one) for rule in rules for one in rule.conditions} == set(get_args(Condition))


@pytest.mark.parametrize("sample", checked("json"), ids=str)
def test_json_of_the_documentation_is_json(sample: Sample):
    json.loads(sample.text)


@pytest.mark.parametrize("sample", checked("ini"), ids=str)
def test_a_unit_of_the_documentation_has_the_sections_of_a_service(sample: Sample):
    parser = configparser.ConfigParser(strict=False, interpolation=None)
    parser.read_string(sample.text)
    assert parser.sections() == ["Unit", "Service", "Install"]
