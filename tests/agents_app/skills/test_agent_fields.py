from pathlib import Path

import pytest

from agents_app.skills.specs import (
    AgentSpec,
    EventHookSpec,
    HooksSpec,
    ProjectSpec,
    RuntimeSpec,
    WebhookSpec,
)
from tests.agents_app.skills.reading import SKILL, agent, problem, problems, project, skill


def test_an_empty_file_has_every_default():
    spec = skill("")
    assert spec == AgentSpec(name="reporter", source_path=Path(SKILL))
    assert (spec.scale, spec.timeout_seconds, spec.work_queue_size) == (1, 900, 100)
    assert (spec.max_reruns, spec.max_call_depth, spec.retries, spec.on_lost) == (10, 3, 0, "fail")
    assert spec.runtime == RuntimeSpec(
        type="process",
        run_as="drover-agent",
        image="",
        memory="4g",
        cpus=None,
        network="none",
        pids_limit=1024,
    )


@pytest.mark.parametrize(
    ("written", "field", "value"),
    [
        ("description: Reports  at night", "description", "Reports at night"),
        ("description: |\n  two\n  lines", "description", "two lines"),
        ("description:", "description", ""),
        ('command: ["./run.sh", -v, 5]', "command", ("./run.sh", "-v", "5")),
        ("command: ./run.sh 'a b' c", "command", ("./run.sh", "a b", "c")),
        ("scale: 0", "scale", 0),
        ("timeout: 60", "timeout_seconds", 60.0),
        ("timeout: 1.5h", "timeout_seconds", 5400.0),
        ("timeout: 0.5", "timeout_seconds", 0.5),
        ("work_queue_size: 7", "work_queue_size", 7),
        ("maxWorkQueueSize: 7", "work_queue_size", 7),
        ("workQueueSize: 7", "work_queue_size", 7),
        ("max_reruns: 0", "max_reruns", 0),
        ("maxReruns: 4", "max_reruns", 4),
        ("max-reruns: 4", "max_reruns", 4),
        ("maxCallDepth: 1", "max_call_depth", 1),
        ("credentials: [github_token, slack:ops]", "credentials", ("github_token", "slack:ops")),
        ("on_lost: retry", "on_lost", "retry"),
        ("onLost: retry", "on_lost", "retry"),
        ("retries: 3", "retries", 3),
        ("timezone: Europe/Berlin", "timezone", "Europe/Berlin"),
        ("env: {A: x, B: 5, C: true}", "env", {"A": "x", "B": "5", "C": "true"}),
        ("params: {a: [1, {b: null}]}", "params", {"a": [1, {"b": None}]}),
        ("hooks: {pre: [a], post: b c}", "hooks", HooksSpec(pre=("a",), post=("b c",))),
        (
            "hooks: {after_run: [./x.sh, {type: notify, onEvents: failed, continueOnError: no}]}",
            "hooks",
            HooksSpec(
                after_run=(
                    EventHookSpec(type="shell", command="./x.sh"),
                    EventHookSpec(type="notify", on_events=("failed",), continue_on_error=False),
                )
            ),
        ),
        (
            "hooks: {on_error: [{type: webhook, url: 'https://x.example/a', timeout: 5s}]}",
            "hooks",
            HooksSpec(
                on_error=(
                    EventHookSpec(type="webhook", url="https://x.example/a", timeout_seconds=5.0),
                )
            ),
        ),
        ("metadataFile: out/facts.json", "metadata_file", "out/facts.json"),
        ("license: MIT", "license", "MIT"),
        ("compatibility: needs git", "compatibility", "needs git"),
        ("allowed-tools: Bash Read", "allowed_tools", ("Bash", "Read")),
        ("allowed-tools: [Bash, Read]", "allowed_tools", ("Bash", "Read")),
        ("name: My Reporter", "title", "My Reporter"),
    ],
)
def test_a_field_is_read(written, field, value):
    assert getattr(agent(written), field) == value


@pytest.mark.parametrize(
    ("written", "field", "value"),
    [
        ("type: host-user", "type", "host-user"),
        ("type: container", "type", "container"),
        ("run_as: ci_bot", "run_as", "ci_bot"),
        ("runAs: ci_bot", "run_as", "ci_bot"),
        ("image: ghcr.io/acme/agent:1", "image", "ghcr.io/acme/agent:1"),
        ("memory: 512m", "memory", "512m"),
        ("cpus: 2", "cpus", 2.0),
        ("cpus: 0.5", "cpus", 0.5),
        ("network: bridge", "network", "bridge"),
        ("pidsLimit: 64", "pids_limit", 64),
    ],
)
def test_a_runtime_field_is_read(written, field, value):
    assert getattr(agent(f"runtime:\n  {written}").runtime, field) == value


def test_the_filters_of_a_webhook_stand_beside_its_source():
    spec = agent(
        "webhooks:\n- source: gh\n  events: [push]\n  not_labels: wip\n  teamIds: [1]\n- source: s"
    )
    assert spec.webhooks == (
        WebhookSpec(
            source="gh", filters={"events": ("push",), "not_labels": "wip", "team_ids": ("1",)}
        ),
        WebhookSpec(source="s"),
    )


def test_the_filters_of_a_webhook_may_have_a_table_of_their_own():
    spec = agent("webhooks:\n- source: gh\n  repos: [a/b]\n  filters: {notLabels: wip}")
    assert spec.webhooks[0].filters == {"repos": ("a/b",), "not_labels": "wip"}


def test_runtime_fields_may_stand_under_metadata():
    spec = agent("metadata:\n  scale: 3\n  maxReruns: 2\n  schedule: 5m\n  runtime: {memory: 1g}")
    assert (spec.scale, spec.max_reruns, spec.runtime.memory) == (3, 2, "1g")
    assert spec.schedules[0].expression == "5m"


def test_other_keys_under_metadata_are_kept():
    spec = agent("metadata: {author: acme, version: '1.0', short-description: x, scale: 2}")
    assert spec.metadata == {"author": "acme", "version": "1.0", "short-description": "x"}


def test_a_mistyped_runtime_field_under_metadata_is_refused():
    assert problem(agent, "metadata:\n  author: acme\n  shedule: 5m") == (
        "SKILL.md:4: metadata.shedule: unknown field; did you mean 'schedule'?"
    )


def test_a_field_both_inside_and_outside_metadata_is_refused():
    assert problem(agent, "scale: 1\nmetadata:\n  scale: 2") == (
        "SKILL.md:4: metadata.scale: is also given outside metadata; keep one"
    )


def test_the_agents_config_wins_over_its_frontmatter():
    spec = agent("scale: 2\ntimeout: 5m\ndescription: front", config="scale = 5\nmaxReruns = 1")
    assert (spec.scale, spec.timeout_seconds, spec.max_reruns) == (5, 300, 1)
    assert spec.description == "front"


def test_tables_of_the_config_are_merged_with_those_of_the_frontmatter():
    spec = agent(
        "env: {A: front, B: front}\nruntime: {memory: 1g, cpus: 2}\n"
        "schedules: {a: {interval: 5m}, b: {interval: 6m}}",
        config='[env]\nB = "config"\n[runtime]\npidsLimit = 9\n'
        '[schedules.b]\ntype = "cron"\ncron = "@daily"\n',
    )
    assert spec.env == {"A": "front", "B": "config"}
    assert (spec.runtime.memory, spec.runtime.cpus, spec.runtime.pids_limit) == ("1g", 2, 9)
    assert {s.name: s.expression for s in spec.schedules} == {"a": "5m", "b": "@daily"}


def test_a_config_may_hold_webhooks_and_dates():
    spec = skill(
        "", config='[[webhooks]]\nsource = "gh"\nevents = ["push"]\n[params]\non=2026-01-31'
    )
    assert spec.webhooks == (WebhookSpec(source="gh", filters={"events": ("push",)}),)
    assert spec.params == {"on": "2026-01-31"}


def test_fields_that_the_agent_leaves_out_come_from_the_project():
    defaults = project(
        'command = ["claude", "-p"]\nimage = "acme"\ntimezone = "Asia/Tokyo"\nmaxReruns = 1\n'
        "maxCallDepth = 2\nworkQueueSize = 3\n[local]\ntimeout = 60\n"
    )
    spec = agent("schedule: '@daily'", project=defaults)
    assert spec.command == ("claude", "-p")
    assert (spec.max_reruns, spec.max_call_depth, spec.work_queue_size) == (1, 2, 3)
    assert (spec.timeout_seconds, spec.runtime.image, spec.timezone) == (60, "acme", "Asia/Tokyo")
    assert spec.schedules[0].timezone == "Asia/Tokyo"


def test_the_time_limit_of_an_agent_wins_over_that_of_the_project():
    defaults = project("[local]\ntimeout = 3600\n")
    assert agent("", project=defaults).timeout_seconds == 3600
    assert agent("timeout: 5m", project=defaults).timeout_seconds == 300
    spec = agent("timeout: 5m", config="timeout = 7200", project=defaults)
    assert spec.timeout_seconds == 7200


def test_the_agent_wins_over_the_project():
    defaults = ProjectSpec(command=("claude",), image="acme", timezone="Asia/Tokyo", max_reruns=1)
    spec = agent(
        "command: ./x\nruntime: {image: mine}\ntimezone: UTC\nmax_reruns: 2", project=defaults
    )
    assert spec.command == ("./x",)
    assert (spec.runtime.image, spec.timezone, spec.max_reruns) == ("mine", "UTC", 2)


@pytest.mark.parametrize(
    ("frontmatter", "config"),
    [
        ("image: mine:1", None),
        ("metadata: {image: mine:1}", None),
        ("runtime: {image: mine:1}", None),
        ("runtime: {cpus: 2}\nimage: mine:1", None),
        ("image: other:1", '[runtime]\nimage = "mine:1"\n'),
        ("runtime: {image: other:1}", 'image = "mine:1"\n'),
    ],
)
def test_an_image_is_read_wherever_it_is_written_and_means_a_container(frontmatter, config):
    """Guard: `image` outside `runtime` was an unknown field, and inside it had no effect without
    `runtime.type`."""
    spec = agent(frontmatter, config=config, project=ProjectSpec(image="project:1"))
    assert (spec.runtime.image, spec.runtime.type) == ("mine:1", "container")


def test_an_image_does_not_change_a_runtime_that_is_named():
    spec = agent("image: mine:1\nruntime: {type: process}")
    assert (spec.runtime.image, spec.runtime.type) == ("mine:1", "process")


def test_an_image_that_is_given_twice_or_is_no_text_is_refused():
    assert problems(agent, "image: a\nruntime: {image: b}") == [
        "SKILL.md:2: image: is also given in runtime; keep one"
    ]
    assert problem(agent, "image: 5").startswith("SKILL.md:2: runtime.image: must be text")


def test_the_project_may_give_image_memory_and_cpus_under_local():
    """Guard: the place of these defaults in Action Llama's config.toml."""
    defaults = project('[local]\nimage = "acme:2"\nmemory = "2g"\ncpus = 1.5\n')
    runtime = agent("scale: 1", project=defaults).runtime
    assert (runtime.type, runtime.image, runtime.memory, runtime.cpus) == (
        *("process", "acme:2", "2g", 1.5),
    )
    own = agent("runtime: {memory: 1g}", project=defaults).runtime
    assert (own.memory, own.cpus) == ("1g", 1.5)


def test_a_field_for_programs_only_cannot_be_set_from_a_file():
    for name in ("instructions", "source_path", "title", "timeout_seconds"):
        assert f"SKILL.md:2: {name}: unknown field" in problem(agent, f"{name}: x")


def test_the_directory_of_an_agent_is_where_its_file_is():
    assert skill("").directory == Path(SKILL).parent


def test_an_error_in_the_config_names_the_config_and_its_line():
    assert problems(agent, "scale: -1", config='\nscale = 1\n[runtime]\nmemory = "lots"\n') == [
        "config.toml:4: runtime.memory: must be an amount such as 512m or 4g, not 'lots'"
    ]
