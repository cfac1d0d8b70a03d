"""Cases written by hand from the documents of herdctl, through the adapters of the suites."""

from typing import Any

import pytest

from tests.conformance.adapters import ADAPTERS
from tests.conformance.test_conformance import agrees

ENV = {"A": "1", "E": "", "B_2": "x${A}"}
CONTEXT: dict[str, Any] = {
    "event": "timeout",
    "job": {"id": "j"},
    "result": {"success": False, "output": "o"},
    "agent": {"id": "a"},
    "metadata": {"list": [0, "x"], "empty": [], "table": {}, "no": None, "text": "0", "n": 0.0},
}


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("${B}", {"error": True}),
        ("${B}", {"error": "UndefinedVariableError"}),
        ("${A}${A:-2}${B:-${A}", "11${A"),
        ("${B:-${A}}", "${A}"),
        ("${B_2}", "x${A}"),
        ("${B:-a:-b}", "a:-b"),
        ("${B:}", "${B:}"),
        ("${ A }", "${ A }"),
        ("$${A}", "$1"),
        ({"${A}": "${A}"}, {"${A}": "1"}),
        ([1.5, None, False, ["${E:-d}"]], [1.5, None, False, [""]]),
        ("", ""),
    ],
)
def test_variables_are_replaced_as_in_herdctl(text, expected):
    actual = ADAPTERS["fleet.interpolate"]({"text": text, "env": ENV})
    assert agrees(actual, expected), actual


@pytest.mark.parametrize(
    ("case", "expected"),
    [
        ({"base": {"a": [1, 2]}, "override": {"a": [3]}}, {"a": [3]}),
        ({"base": {"a": {"x": 1}}, "override": {"a": [1]}}, {"a": [1]}),
        (
            {"base": {"a": {"x": {"y": 1}}}, "override": {"a": {"x": {"z": 2}}}},
            {"a": {"x": {"y": 1, "z": 2}}},
        ),
        ({"base": {"a": None}, "override": {"a": {"x": 1}}}, {"a": {"x": 1}}),
        ({"override": {"a": 1}}, {"a": 1}),
        ({"base": {"a": 1}}, {"a": 1}),
        ({"agent": {"name": "x"}}, {"name": "x"}),
        (
            {"defaults": {"description": "d", "model": "m"}, "agent": {"name": "x"}},
            {"name": "x", "model": "m"},
        ),
        (
            {
                "defaults": {
                    "allowed_tools": ["a", "b"],
                    "work_source": {"labels": {"ready": "r"}},
                },
                "agent": {"name": "x", "allowed_tools": [], "work_source": {"repo": "o/r"}},
            },
            {
                "name": "x",
                "allowed_tools": [],
                "work_source": {"repo": "o/r", "labels": {"ready": "r"}},
            },
        ),
        (
            {
                "defaults": {"working_directory": {"root": "/a", "clone_depth": 2}},
                "agent": {"name": "x", "working_directory": "/b"},
            },
            {"name": "x", "working_directory": "/b"},
        ),
    ],
)
def test_tables_are_merged_as_in_herdctl(case, expected):
    assert agrees(ADAPTERS["fleet.merge"](case), expected)


@pytest.mark.parametrize(
    ("schema", "value", "expected"),
    [
        ("HookConfig", {"type": "mail"}, {"issues": ["type"]}),
        ("HookConfig", {"type": "shell"}, {"issues": ["command"]}),
        ("HookConfig", {"type": "shell", "command": ""}, {"issues": ["command"]}),
        ("HookConfig", {"type": "webhook", "url": "nope"}, {"issues": ["url"]}),
        (
            "HookConfig",
            {"type": "webhook", "url": "https://x.example/a"},
            {
                **{"continue_on_error": True, "type": "webhook", "url": "https://x.example/a"},
                **{"method": "POST", "timeout": 10000},
            },
        ),
        (
            "HookConfig",
            {"type": "webhook", "url": "https://x.example", "method": "GET", "timeout": 0},
            {"issues": ["method", "timeout"]},
        ),
        ("HookConfig", {"type": "discord", "channel_id": "1"}, {"issues": ["bot_token_env"]}),
        (
            "HookConfig",
            {"type": "shell", "command": "x", "on_events": ["done"]},
            {"issues": ["on_events.0"]},
        ),
        # The second form of a work source has no `repo`, and drops it.
        ("WorkSource", {"type": "github", "repo": "nope"}, {"type": "github"}),
        ("WorkSource", {"type": "gitlab"}, {"issues": ["(root)"]}),
        ("AgentConfig", {}, {"issues": ["name"]}),
        ("AgentConfig", {"name": "a", "foo": 1}, {"issues": ["(root)"]}),
        ("AgentConfig", {"name": "a", "max_turns": 1.5}, {"issues": ["max_turns"]}),
        ("AgentConfig", {"name": "a", "runtime": "x"}, {"issues": ["runtime"]}),
        ("AgentConfig", {"name": 3, "model": 4}, {"issues": ["name", "model"]}),
        ("AgentDocker", {"memory": "lots"}, {"issues": ["memory"]}),
        ("AgentDocker", {"memory": "1.5G", "tmpfs": ["/tmp:size=1m"]}, "ok"),
        ("FleetDocker", {"volumes": ["/a:/b:rx"]}, {"issues": ["volumes"]}),
        ("FleetDocker", {"user": "1000", "ports": ["3000"]}, "ok"),
        ("Instances", {"max_concurrent": 2.5}, {"issues": ["max_concurrent"]}),
        ("Instances", {"max_concurrent": "2"}, {"issues": ["max_concurrent"]}),
        ("FleetConfig", {"agents": [{}]}, {"issues": ["agents.0.path"]}),
        ("FleetConfig", {"fleets": [{"path": "x", "name": "a.b"}]}, {"issues": ["fleets.0.name"]}),
        ("FleetConfig", {"version": 0}, {"issues": ["version"]}),
        ("FleetConfig", {"fleet": {"nam": "x"}}, {"issues": ["fleet"]}),
        ("Session", {"max_turns": -1}, {"issues": ["max_turns"]}),
        ("Schedule", {"type": "chat", "enabled": "no"}, {"issues": ["enabled"]}),
        (
            "Schedule",
            {"type": "cron", "cron": "a", "expression": "b"},
            {"type": "cron", "cron": "a", "enabled": True, "resume_session": False},
        ),
        (
            "WorkingDirectory",
            {"root": "/w"},
            {"root": "/w", "auto_clone": True, "clone_depth": 1, "default_branch": "main"},
        ),
    ],
)
def test_values_are_checked_as_in_herdctl(schema, value, expected):
    actual = ADAPTERS["fleet.schema"]({"schema": schema, "value": value})
    assert agrees(actual, expected), actual


@pytest.mark.parametrize(
    ("hook", "expected"),
    [
        ({"on_events": []}, True),
        ({"on_events": None, "when": None}, True),
        ({"when": "job.id.length"}, False),
        ({"when": "nothing.at.all"}, False),
        ({"on_events": ["failed", "timeout"]}, True),
        ({"on_events": ["timeout"], "when": "metadata.no"}, False),
        ({"when": ""}, True),
        ({"when": "metadata.list.1"}, True),
        ({"when": "metadata.list.0"}, False),
        ({"when": "metadata.list.01"}, False),
        ({"when": "metadata.list.2"}, False),
        ({"when": "metadata.list.length"}, True),
        ({"when": "metadata.empty.length"}, False),
        ({"when": "metadata.empty"}, True),
        ({"when": "metadata.table"}, True),
        ({"when": "metadata.text"}, True),
        ({"when": "metadata.n"}, False),
        ({"when": "result.output.length"}, False),
        ({"when": "metadata..list"}, False),
        ({"when": "event"}, True),
    ],
)
def test_hooks_are_filtered_as_in_herdctl(hook, expected):
    assert ADAPTERS["hooks.filter"]({"hook": hook, "context": CONTEXT}) is expected


@pytest.mark.parametrize(
    ("hooks", "counts"),
    [
        ([], (True, 0, 0, 0, 0, False)),
        (
            [{"command": "exit 3", "continue_on_error": False}, {"command": "true"}],
            (False, 2, 1, 1, 0, True),
        ),
        ([{"command": "no-such-program-here"}], (False, 1, 0, 1, 0, False)),
        # Scripts that people have search in the text of the context.
        ([{"command": 'grep -q \'"event":"failed"\''}], (True, 1, 1, 0, 0, False)),
        (
            [{"command": "exit 1", "when": "metadata.x", "continue_on_error": False}],
            (True, 1, 0, 0, 1, False),
        ),
    ],
)
def test_hooks_are_run_and_counted_as_in_herdctl(hooks, counts):
    names = ("success", "total", "ok", "failed", "skipped", "should_fail_job")
    actual = ADAPTERS["hooks.exec"]({"hooks": hooks, "event": "failed"})
    assert actual == dict(zip(names, counts, strict=True))


ISSUE = "/repos/o/r/issues/5"


@pytest.mark.parametrize(
    ("case", "expected"),
    [
        (
            {"op": "claim", "issue": {"state": "open", "labels": ["Ready"]}},
            {
                "success": True,
                "calls": [
                    f"GET {ISSUE}",
                    f'POST {ISSUE}/labels {{"labels":["agent-working"]}}',
                    f"DELETE {ISSUE}/labels/ready",
                    f"GET {ISSUE}",
                ],
            },
        ),
        (
            {"op": "claim", "issue": {"state": "open", "labels": ["Agent-Working"]}},
            {"success": False, "reason": "already_claimed", "calls": [f"GET {ISSUE}"]},
        ),
        (
            {"op": "complete", "outcome": "partial"},
            {"calls": [f"POST {ISSUE}/comments", f"DELETE {ISSUE}/labels/agent-working"]},
        ),
        ({"op": "priority", "labels": ["P1"]}, "high"),
        ({"op": "priority", "labels": ["priority: low"]}, "low"),
        ({"op": "priority", "labels": ["p3", "IMPORTANT"]}, "high"),
        ({"op": "id", "work_item_id": "github-"}, {"error": "GitHubAPIError"}),
        ({"op": "id", "work_item_id": "GitHub-5"}, {"error": "GitHubAPIError"}),
        (
            {
                "op": "fetch",
                "issues": [
                    {"number": 7, "labels": ["to do", "p0"]},
                    {"number": 8, "labels": ["to do"]},
                ],
                "options": {"priority": ["critical"]},
                "config": {"labels": {"ready": "to do", "in_progress": "doing"}},
            },
            {
                "ids": ["github-7"],
                "calls": [
                    "GET /repos/o/r/issues?labels=to+do&sort=created&direction=asc&state=open"
                    "&per_page=30"
                ],
            },
        ),
    ],
)
def test_issues_are_fetched_claimed_and_reported_as_in_herdctl(case, expected):
    assert agrees(ADAPTERS["worksource.github"](case), expected)


@pytest.mark.parametrize(
    ("case", "expected"),
    [
        ({"status": 408, "rate_limited": False}, True),
        ({"status": 599, "rate_limited": False}, True),
        ({"status": 600, "rate_limited": False}, False),
        ({"status": None, "rate_limited": False}, True),
        ({"status": 429, "rate_limited": False}, False),
        ({"status": 403, "remaining": "0"}, True),
        ({"status": 403, "remaining": 0}, True),
        ({"status": 403, "remaining": "00"}, True),
        ({"status": 403, "remaining": ""}, False),
        ({"status": 403, "remaining": "10"}, False),
        ({"status": 403, "remaining": None}, False),
        ({"status": 429, "remaining": None}, True),
        ({"attempt": 3, "rate_limit_reset_ms": None, "jitter": 0}, 8000),
        ({"attempt": 4, "rate_limit_reset_ms": None, "jitter": 0}, 16000),
        ({"attempt": 60, "rate_limit_reset_ms": None, "jitter": 0}, 30000),
        ({"attempt": 0, "rate_limit_reset_ms": 5000, "jitter": 0}, 6000),
        ({"attempt": 0, "rate_limit_reset_ms": 90000, "jitter": 0}, 30000),
        ({"attempt": 1, "rate_limit_reset_ms": -5, "jitter": 0}, 2000),
    ],
)
def test_requests_are_repeated_as_in_herdctl(case, expected):
    assert ADAPTERS["worksource.retry"](case) == expected
