"""The checks before the start of `up`, each with a message of one line."""

import socket
from pathlib import Path

import pytest

from agents_app.conf import read_conf
from agents_app.errors import ConfigError
from agents_app.stack import preflight
from tests.parts.ports import free_port


def ports(**env: str) -> dict[str, str]:
    return preflight.choose_ports(read_conf(env), env)


def test_configured_free_ports_are_used() -> None:
    gateway, flower = str(free_port()), str(free_port())
    assert ports(DROVER_PORT=gateway, DROVER_FLOWER_PORT=flower) == {
        "DROVER_PORT": gateway,
        "DROVER_FLOWER_PORT": flower,
    }


@pytest.mark.parametrize("variable", ["DROVER_PORT", "DROVER_FLOWER_PORT"])
def test_a_port_in_use_is_named_with_its_variable(variable: str) -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        taken = server.getsockname()[1]
        env = {"DROVER_PORT": "0", "DROVER_FLOWER_PORT": "0", variable: str(taken)}
        with pytest.raises(ConfigError, match=rf"port {taken} is in use. Set {variable}"):
            ports(**env)


def test_port_zero_means_any_free_port() -> None:
    chosen = ports(DROVER_PORT="0", DROVER_FLOWER_PORT="0")
    assert all(int(port) > 1023 for port in chosen.values())


def test_without_flower_no_port_of_flower_is_checked():
    assert set(ports(DROVER_PORT="0", DROVER_FLOWER="no")) == {"DROVER_PORT"}


def test_a_used_default_port_of_flower_is_replaced_by_a_free_port(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        taken = server.getsockname()[1]
        from dataclasses import replace

        conf = replace(read_conf({}), port=0, flower_port=taken)
        assert preflight.choose_ports(conf, {})["DROVER_FLOWER_PORT"] != str(taken)


def test_a_missing_project_is_named(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"nowhere does not exist.*DROVER_PROJECT"):
        preflight.ensure_project(tmp_path / "nowhere")
