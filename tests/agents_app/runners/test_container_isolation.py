"""What a program in a container cannot do, tried from inside."""

import socket

import pytest

from agents_app.runners.containers.options import AGENT_UID
from tests.agents_app.runners.containers import Contained, NewContained


def _said(run: Contained) -> str:
    run.run()
    return run.sink.text().decode()


def test_a_container_has_an_unprivileged_user_and_cannot_change_it(contained: NewContained):
    """The image holds an `id` that is setuid root; without no-new-privileges it says 0."""
    said = _said(contained("id -u; id -g; /bin/rootly -u"))
    assert said.split() == [str(AGENT_UID), str(AGENT_UID), str(AGENT_UID)]


def test_a_container_has_no_capabilities_and_a_seccomp_filter(contained: NewContained):
    said = _said(contained("grep -E '^(Cap|NoNewPrivs|Seccomp:)' /proc/self/status"))
    status = dict(line.split(":\t") for line in said.splitlines())
    kinds = ("CapInh", "CapPrm", "CapEff", "CapBnd", "CapAmb")
    assert [int(status[kind], 16) for kind in kinds] == [0] * 5
    assert status["NoNewPrivs"] == "1"
    assert status["Seccomp"] == "2"


def test_a_container_can_write_only_to_its_workdir_and_tmp(contained: NewContained):
    script = "for d in / /bin /etc /usr /dev/shm . /tmp; do touch $d/x 2>/dev/null && echo $d; done"
    assert _said(contained(script)).split() == ["/dev/shm", ".", "/tmp"]


def test_files_in_tmp_cannot_be_executed_but_files_in_the_workdir_can(
    contained: NewContained,
):
    script = (
        "for d in /tmp .; do cp /bin/busybox $d/true; $d/true 2>/dev/null && echo ran in $d; done"
    )
    assert _said(contained(script)) == "ran in .\n"


def test_a_container_sees_neither_other_workdirs_nor_the_host(contained: NewContained, tmp_path):
    other = contained("true")
    (other.cwd / "secret").write_text("sesame")
    run = contained(f"exec 2>&1; ls -A {tmp_path}; cat {other.cwd}/secret; ls /root /home /var/run")
    said = _said(run)
    assert said.splitlines()[0] == str(run.run_id)
    assert "sesame" not in said
    assert said.count("No such file or directory") == 4


def test_a_container_has_no_network_and_cannot_reach_the_host(contained: NewContained):
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
        run = contained(f"ls /sys/class/net; nc -w 1 127.0.0.1 {port} && echo reached").run()
    assert run.sink.text(1) == b"lo\n"


def test_a_container_sees_only_its_own_processes(contained: NewContained):
    said = _said(contained("ls /proc | grep -c '^[0-9]'"))
    assert int(said) < 8


def test_a_container_has_no_variables_of_the_server(contained: NewContained, monkeypatch):
    monkeypatch.setenv("DATABASE_PASSWORD", "sesame")
    run = contained("env")
    said = dict(line.split("=", 1) for line in _said(run).splitlines())
    assert set(said) <= {"PATH", "HOME", "DROVER_RUN_ID", "HOSTNAME", "PWD", "SHLVL"}
    assert said["HOME"] == str(run.cwd)


@pytest.mark.fault("F32")
def test_a_fork_bomb_in_a_container_reaches_its_limit(contained: NewContained):
    """F32."""
    bomb = "while :; do sleep 300 & done"
    run = contained(bomb, pids_limit=32, timeout=3, grace=1).run()
    if run.outcome.kind == "timed_out":
        assert run.outcome.error.endswith("; it reached its limit of 32 processes")
    else:
        assert b"fork" in run.sink.text(2) and run.outcome.exit_code != 0
    assert run.took_seconds < 3 + 1 + 5
    assert contained("echo alive").run().sink.text(1) == b"alive\n"


def test_the_limits_of_a_container_are_those_of_the_agent(contained: NewContained):
    run = contained("sleep 30", memory="32m", cpus=0.5, pids_limit=77, network="none").start()
    found = run.client.inspect_container(run.container())
    host = found["HostConfig"]
    assert (host["Memory"], host["MemorySwap"]) == (32 * 2**20, 32 * 2**20)
    assert (host["NanoCpus"], host["PidsLimit"], host["NetworkMode"]) == (500_000_000, 77, "none")
    assert host["ReadonlyRootfs"] and host["Init"] and host["IpcMode"] == "private"
    assert host["RestartPolicy"]["Name"] == "no" and not host["Privileged"]
    assert host["LogConfig"]["Type"] == "local"
    assert [mount["Destination"] for mount in found["Mounts"]] == [str(run.cwd)]
    assert found["Config"]["Labels"]["drover.run"] == str(run.run_id)
    run.control.stop("seen", grace_seconds=0)


def test_no_secret_is_in_a_name_a_label_or_the_command(contained: NewContained):
    run = contained("sleep 30")
    run.env["DROVER_RUN_TOKEN"] = "sesame"
    run.start()
    found = run.client.inspect_container(run.container())
    seen = [found["Name"], found["Config"]["Labels"], found["Config"]["Cmd"], found["Args"]]
    assert "sesame" not in str(seen)
    assert "DROVER_RUN_TOKEN=sesame" in found["Config"]["Env"]
    run.control.stop("seen", grace_seconds=0)
