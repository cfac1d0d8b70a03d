"""Invalid input gets one line with a remedy and exit code 1, never a traceback."""

import pytest

from agents_app.models import Agent, Tenant
from tests.agents_app.fleet import Fleet
from tests.agents_app.management.calling import call


def test_an_unknown_agent_is_answered_with_the_nearest_name(fleet: Fleet):
    fleet.agent("reporter")
    said = call("run", "reprter")
    expected = (
        "there is no agent 'reprter'; did you mean 'reporter'? (manage.py stat lists the agents)\n"
    )
    assert (said.code, said.out, said.err) == (1, "", expected)


def test_an_agent_that_resembles_none_is_not_guessed(fleet: Fleet):
    fleet.agent("reporter")
    assert call("pause", "zzz").err == "there is no agent 'zzz' (manage.py stat lists the agents)\n"


@pytest.mark.parametrize(
    "arguments",
    ["run x", "logs x", "pause x", "resume x", "stop x", "queue list x", "queue clear x"],
)
def test_every_command_refuses_an_unknown_agent_alike(fleet: Fleet, arguments: str):
    said = call(*arguments.split())
    assert (said.code, said.out) == (1, "")
    assert said.err.startswith("there is no agent 'x'")


@pytest.mark.parametrize("arguments", [("rerun",), ("logs",), ("stop",), ("queue", "drop")])
def test_an_unknown_number_is_refused(fleet: Fleet, arguments: tuple[str, ...]):
    said = call(*arguments, "4711")
    assert said.code == 1
    assert "4711" in said.err and said.err.count("\n") == 1


@pytest.mark.parametrize("text", ["seven", "-1", "1.5", "٣", "9" * 40])
def test_a_run_that_is_no_number_is_refused(fleet: Fleet, text: str):
    said = call("rerun", "--", text)
    assert said.code == 1
    assert "is not a run number" in said.err


def test_a_number_that_is_also_an_agents_name_must_be_made_clear(durable_fleet: Fleet):
    agent = durable_fleet.agent("1")
    run = durable_fleet.enqueue(agent).runs.get()
    Agent.objects.filter(pk=agent.pk).update(name=str(run.pk))
    said = call("stop", str(run.pk))
    assert (said.code, said.err) == (
        1,
        f"{run.pk} is a run and an agent: use run:{run.pk} or agent:{run.pk}\n",
    )
    assert call("stop", f"run:{run.pk}").out == f"run {run.pk} is being stopped\n"
    assert call("stop", f"agent:{run.pk}").out == f"{run.pk}: nothing was running\n"


def test_another_tenants_run_does_not_exist(fleet: Fleet):
    run = fleet.enqueue(fleet.agent()).runs.get()
    Tenant.objects.create(name="other")
    theirs = call("logs", str(run.pk), "--tenant", "other")
    unknown = call("logs", str(run.pk + 1), "--tenant", "other")
    assert theirs.code == 1
    assert theirs.err == unknown.err.replace(str(run.pk + 1), str(run.pk))


def test_an_unknown_tenant_is_refused(fleet: Fleet):
    assert call("stat", "--tenant", "defalt").err == (
        "there is no tenant 'defalt'; did you mean 'default'?\n"
    )


def test_before_the_first_start_people_are_told_to_start(db: None):
    said = call("run", "reporter")
    assert said.code == 1
    assert "manage.py up" in said.err


def test_bytes_that_are_no_text_are_refused(fleet: Fleet):
    fleet.agent()
    said = call("run", "reporter", "--prompt", "caf\udce9")
    assert said.code == 1
    assert said.err == "prompt: not valid UTF-8: 'caf\\udce9'\n"


@pytest.mark.parametrize("text", ["soon", "-5", "nan", "inf", "1e12", "٣"])
def test_a_timeout_that_is_none_is_refused_before_anything_is_stopped(fleet: Fleet, text: str):
    item = fleet.enqueue(fleet.agent())
    said = call("stop", f"--timeout={text}", "reporter")
    assert said.code == 1
    assert said.err.startswith("--timeout")
    assert item.runs.get().state == "pending"


def test_a_missing_table_is_one_line(fleet: Fleet, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(Agent._meta, "db_table", "drover_gone")
    said = call("run", "reporter")
    assert said.code == 1
    assert said.err.startswith("the database cannot be used: ")
    assert "manage.py doctor" in said.err and said.err.count("\n") == 1
