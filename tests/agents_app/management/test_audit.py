"""`audit`: one JSON object per line."""

import json

from agents_app.accounts import tenants
from agents_app.runs import control
from tests.agents_app.fleet import NOON, Fleet
from tests.agents_app.management.calling import call


def printed(*arguments: str) -> list[dict[str, object]]:
    said = call("audit", *arguments)
    assert said.code == 0, said.err
    return [json.loads(line) for line in said.out.splitlines()]


def test_the_changes_are_printed_as_json_lines(fleet: Fleet):
    control.pause_agent(fleet.agent(), "ann", NOON, "a note with \x1b[31mcolour")
    [line] = printed()
    assert (line["who"], line["what"], line["agent"]) == ("ann", "agent.paused", "reporter")
    assert line["at"] == "2026-03-02T12:00:00.000Z"
    assert "\x1b" not in call("audit").out


def test_each_tenant_has_its_own_lines(fleet: Fleet):
    tenants.create_tenant("acme", "ann", NOON)
    assert printed() == []
    assert {line["tenant"] for line in printed("--tenant", "acme")} == {"acme"}
    assert len(printed("--all-tenants")) == 2


def test_the_period_is_limited(fleet: Fleet):
    control.pause_agent(fleet.agent(), "ann", NOON)
    assert printed("--since", "2026-03-02T12:00:01Z") == []
    assert len(printed("--since", "2026-03-01")) == 1
    assert printed("--until", "2026-03-01") == []


def test_an_unreadable_time_is_refused_in_one_line(fleet: Fleet):
    said = call("audit", "--since", "some day")
    assert said.code == 1 and "some day" in said.err
