"""`docker` of herdctl as the runtime of a run."""

from pathlib import Path

import pytest

from agents_app.formats import ProjectDiscovery, read_project
from agents_app.formats.herdctl.docker import memory_of
from tests.agents_app.formats.written import NO_VARIABLES, agent_of, errors_of, write


def with_docker(tmp_path: Path, docker: str) -> ProjectDiscovery:
    fleet = f"defaults:\n  docker: {docker}\nagents: [{{path: a.yaml}}]\n"
    write(tmp_path, {"herdctl.yaml": fleet, "a.yaml": "name: a\n"})
    found = read_project(tmp_path, server=NO_VARIABLES)
    assert errors_of(found) == []
    return found


def test_a_container_has_the_image_and_limits_of_the_file(tmp_path):
    docker = "{enabled: true, image: x:1, memory: 1.5g, pids_limit: 9, cpu_quota: 150000}"
    runtime = agent_of(with_docker(tmp_path, docker), "a").runtime
    assert (runtime.type, runtime.image, runtime.network) == ("container", "x:1", "bridge")
    assert (runtime.memory, runtime.pids_limit, runtime.cpus) == ("1610612736b", 9, 1.5)


def test_without_an_image_it_is_that_of_claude_code(tmp_path):
    assert agent_of(with_docker(tmp_path, "{enabled: true}"), "a").runtime.image == (
        "anthropic/claude-code:latest"
    )


def test_a_disabled_container_is_a_process(tmp_path):
    found = with_docker(tmp_path, "{enabled: false, image: x, volumes: ['/a:/b'], env: {A: b}}")
    assert agent_of(found, "a").runtime.type == "process"
    assert (found.report, dict(agent_of(found, "a").env)) == ((), {})


def test_what_a_container_of_drover_does_not_do_is_reported(tmp_path):
    docker = (
        "{enabled: true, ephemeral: false, network: host, user: '1000', volumes: ['/a:/b:ro'], "
        "ports: ['80:80'], tmpfs: [/x], cpu_shares: 5, labels: {a: b}, host_config: {ShmSize: 1}, "
        "workspace_mode: ro, max_containers: 2}"
    )
    found = with_docker(tmp_path, docker)
    assert sorted(line.field.removeprefix("docker.") for line in found.report) == [
        *("cpu_shares", "ephemeral", "host_config", "labels", "max_containers", "network"),
        *("ports", "tmpfs", "user", "volumes", "workspace_mode"),
    ]
    assert all((line.file, line.line) == ("herdctl.yaml", 2) for line in found.report)
    assert agent_of(found, "a").runtime.network == "bridge"


@pytest.mark.parametrize(
    ("text", "memory"),
    [("2g", "2g"), ("512M", "512m"), ("2 g", "2g"), ("1024", "1024"), ("1t", "1099511627776b")],
)
def test_amounts_of_memory_are_those_of_drover(text, memory):
    assert memory_of(text) == memory
