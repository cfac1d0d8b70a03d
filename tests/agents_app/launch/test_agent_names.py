"""F71: an agent's name is only shown; queues, paths and processes are named by numbers."""

import os

import pytest

from agents_app.launch import prepare as preparation
from agents_app.models import queue_name
from agents_app.runners.containers.options import container_name, limits, options
from agents_app.skills.discover import discover_project
from agents_app.stack.roles import all_roles
from agents_app.worker.execute import Host
from tests.agents_app.executing import do, printed, shell
from tests.agents_app.fleet import Fleet
from tests.agents_app.project_files import Project

# As near to an option of a program as a name can come.
NAME = "q-rf-no-preserve-root"


@pytest.mark.parametrize(
    "name", ["-Q", "a b", "A", "é", "a" * 65, "a" * 255, "a--b", "default", "a\n"]
)
@pytest.mark.fault("F71")
def test_a_directory_whose_name_is_invalid_becomes_no_agent(project: Project, name: str):
    directory = project.root / "agents" / name
    directory.mkdir(parents=True)
    (directory / "SKILL.md").write_text('---\ndescription: x\ncommand: ["true"]\n---\n')
    found = discover_project(project.root)
    assert [agent.name for agent in found.agents] == []
    assert len(found.errors) == 1


@pytest.mark.fault("F71")
def test_files_and_containers_of_a_run_are_named_by_numbers(
    fleet: Fleet, host: Host, monkeypatch: pytest.MonkeyPatch
):
    """Guard: if a queue, workdir, container or process is named after its agent, this fails."""
    specs = []
    prepare = preparation.prepare_run

    def remember(*given, **options):
        specs.append(prepare(*given, **options))
        return specs[-1]

    monkeypatch.setattr("agents_app.worker.perform.prepare_run", remember)
    agent = fleet.agent(NAME, command=shell("echo $DROVER_AGENT; cat /proc/$$/cmdline; pwd"))
    run = do(fleet, host, agent)
    said = printed(run.pk)
    assert said.count(NAME) == 1 and said.startswith(f"{NAME}\n")
    (spec,) = specs
    assert queue_name(agent.pk) == f"agent.{agent.pk}"
    paths = [str(path) for path in (spec.cwd, spec.prompt_file, *(m.path for m in spec.mounts))]
    assert NAME not in " ".join([*paths, *spec.argv, container_name(spec)])
    elsewhere = {key: value for key, value in spec.env.items() if NAME in value}
    assert set(elsewhere) == {"DROVER_AGENT"}


def test_a_container_has_the_name_on_a_label_and_in_a_variable_alone(
    fleet: Fleet, host: Host, monkeypatch: pytest.MonkeyPatch
):
    spec = preparation.RunSpec(
        7, ("x",), {"DROVER_AGENT": NAME}, preparation.ROOT, preparation.ROOT / "p", 60
    )
    found = options(spec, {})
    assert found.pop("labels")["drover.agent"] == NAME
    assert found.pop("environment")["DROVER_AGENT"] == NAME
    assert NAME not in str(found) + str(limits(spec)) + container_name(spec)


def test_no_process_of_drover_is_started_with_a_name(fleet: Fleet):
    fleet.agent(NAME)
    started = " ".join(
        word for role in all_roles(preparation.CONF, os.environ) for word in role.argv
    )
    assert "worker-1" in started and NAME not in started
