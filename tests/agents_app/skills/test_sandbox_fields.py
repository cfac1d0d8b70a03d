"""`sandbox` in SKILL.md and config.toml."""

import pytest

from agents_app.skills.specs import SandboxSpec
from tests.agents_app.skills.reading import agent, problem, project


@pytest.mark.parametrize(
    ("front", "expected"),
    [
        ("", SandboxSpec()),
        ("sandbox: off", SandboxSpec(mode="off")),
        ("sandbox: false", SandboxSpec(mode="off")),
        ("sandbox: required", SandboxSpec(mode="required")),
        ("sandbox: {read: /srv}", SandboxSpec(read=("/srv",))),
        (
            "sandbox: {mode: required, read: [/srv, ~/x], write: [/out]}",
            SandboxSpec(mode="required", read=("/srv", "~/x"), write=("/out",)),
        ),
    ],
)
def test_a_word_or_a_table_is_read(front, expected):
    assert agent(front).sandbox == expected


def test_the_two_files_of_an_agent_are_merged():
    spec = agent("sandbox: {read: [/a]}", config='sandbox = "required"')
    assert spec.sandbox == SandboxSpec(mode="required", read=("/a",))


def test_paths_of_the_project_are_added_and_its_mode_is_the_default():
    whole = project('[sandbox]\nmode = "required"\nread = ["/models"]')
    assert agent("", project=whole).sandbox == SandboxSpec(mode="required", read=("/models",))
    assert agent("sandbox: off", project=whole).sandbox.mode == "off"
    assert agent("sandbox: {read: [/mine]}", project=whole).sandbox.read == ("/models", "/mine")
    assert project('sandbox = "off"').sandbox.mode == "off"


@pytest.mark.parametrize(
    ("front", "expected"),
    [
        ("sandbox: on", "sandbox.mode: must be 'auto', 'required' or 'off', not 'on'"),
        ("sandbox: {raed: [/x]}", "sandbox.raed: "),
        ("sandbox: {read: [data]}", "sandbox.read.1: must be an absolute path, or begin with ~/"),
        ("sandbox: 3", "sandbox: must be a table"),
    ],
)
def test_an_error_names_the_field(front, expected):
    assert expected in problem(agent, front)
