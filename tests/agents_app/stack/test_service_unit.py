"""`service install` writes a unit that systemd accepts, and removes it."""

import shutil
import subprocess
from pathlib import Path

import pytest

from agents_app.conf import CONF
from agents_app.stack import service_unit
from tests.agents_app.management.calling import call
from tests.parts.missing import missing


@pytest.fixture(autouse=True)
def own_directory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The directory of units of this user."""
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    return tmp_path / "systemd" / "user"


@pytest.mark.parametrize("system", [False, True], ids=["user", "system"])
def test_systemd_accepts_the_unit(tmp_path: Path, *, system: bool) -> None:
    if shutil.which("systemd-analyze") is None:
        missing("systemd-analyze", "apt-get install systemd")
    CONF.data.mkdir(parents=True, exist_ok=True)
    unit = service_unit.build_unit(CONF, system=system, user="root")
    (tmp_path / "drover.service").write_text(unit.text)
    verified = subprocess.run(
        ["systemd-analyze", "verify", "--man=no", str(tmp_path / "drover.service")],
        capture_output=True,
        text=True,
        check=False,
    )
    own = [line for line in verified.stderr.splitlines() if "drover.service" in line]
    assert (verified.returncode, own) == (0, [])
    for line in ("Type=notify", "WatchdogSec=60", "Restart=always", "Delegate=yes"):
        assert line in unit.text.splitlines()
    # Not where Drover is installed: that directory changes with the version of Python.
    assert f"WorkingDirectory={CONF.project}" in unit.text.splitlines()
    # These would take away what the sandbox of runs and agents of other users need.
    for option in ("NoNewPrivileges", "RestrictNamespaces", "PrivateTmp", "SystemCallFilter="):
        assert f"\n{option}" not in unit.text


def test_install_says_what_it_wrote_and_what_is_next(own_directory: Path) -> None:
    said = call("service", "install")
    assert f"written  {own_directory}/drover.service" in said.out
    assert "systemctl --user enable --now drover.service" in said.out
    assert (
        f'Environment="DROVER_PROJECT={CONF.project}"' in next(own_directory.iterdir()).read_text()
    )
    assert call("service", "install").code == 0
    (own_directory / "drover.service").write_text("mine")
    refused = call("service", "install", "--user")
    assert (refused.code, "add --replace to overwrite it" in refused.err) == (1, True)
    assert call("service", "install", "--replace").code == 0
    assert f"removed  {own_directory}/drover.service" in call("service", "uninstall").out
    assert "nothing was removed" in call("service", "uninstall").out


def test_bad_input_is_refused_with_one_message(tmp_path: Path) -> None:
    (tmp_path / "systemd").touch()
    for arguments, message in (
        (("--user",), "--user installs a service of this user"),
        (("--user", "--run-as", "root"), "--run-as is for --system"),
        (("--system", "--run-as", "nobody-here"), "there is no account 'nobody-here'"),
    ):
        said = call("service", "install", *arguments)
        assert (said.code, len(said.err.splitlines())) == (1, 1)
        assert message in said.err
