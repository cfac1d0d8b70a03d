"""Secrets outside of the database: each tenant reads only those of its own project."""

import os
from pathlib import Path

import pytest

from agents_app.models import Tenant
from agents_app.models import tenant as module
from agents_app.secrets import read_secret


@pytest.fixture
def default(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Tenant:
    (tmp_path / "own").mkdir()
    (tmp_path / "own" / "key").write_text("of the operator\n")
    monkeypatch.setattr(module, "CONF", type("Conf", (), {"project": tmp_path / "own"}))
    monkeypatch.setenv("DOOR_KEY", "of the operator")
    return Tenant(name="default")


@pytest.fixture
def acme(tmp_path: Path) -> Tenant:
    (tmp_path / "acme").mkdir()
    (tmp_path / "acme" / "key").write_text("of acme\n")
    return Tenant(name="acme", project=str(tmp_path / "acme"))


def test_a_file_is_that_of_the_tenant(default: Tenant, acme: Tenant):
    assert read_secret("file:key", default) == "of the operator"
    assert read_secret("file:key", acme) == "of acme"
    assert read_secret("file:key", Tenant(name="empty")) == ""


def test_variables_belong_to_the_default_tenant(default: Tenant, acme: Tenant):
    assert read_secret("env:DOOR_KEY", default) == "of the operator"
    assert read_secret("env:DOOR_KEY", acme) == ""


def test_no_path_leads_out_of_the_project_of_a_tenant(default: Tenant, acme: Tenant):
    theirs = Path(acme.project)
    (theirs / "link").symlink_to(theirs.parent / "own" / "key")
    for path in ("../own/key", "link", str(theirs.parent / "own" / "key")):
        assert read_secret(f"file:{path}", acme) == "", path


def test_a_fifo_is_not_waited_for(default: Tenant, acme: Tenant):
    """The gateway reads these every second, for all tenants."""
    os.mkfifo(Path(acme.project) / "pipe")
    assert read_secret("file:pipe", acme) == ""
