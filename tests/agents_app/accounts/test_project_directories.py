"""Each tenant has a project directory of its own, which no other tenant's directory overlaps."""

from pathlib import Path

import pytest

from agents_app.accounts import change_project, project_problem, tenants
from agents_app.conf import CONF
from agents_app.errors import Refused
from agents_app.models import RunEvent, Tenant
from tests.agents_app.fleet import NOON, Fleet


def create(name: str, project: Path | str) -> Tenant:
    return tenants.create_tenant(name, "ann", NOON, str(project))[0]


def test_the_real_path_of_the_directory_is_stored(fleet: Fleet, tmp_path: Path):
    (tmp_path / "fleet").mkdir()
    (tmp_path / "link").symlink_to(tmp_path / "fleet")
    tenant = create("acme", tmp_path / "link" / ".." / "link")
    assert tenant.project == str(tmp_path / "fleet")
    assert tenant.project_directory == tmp_path / "fleet"
    assert fleet.tenant.project_directory == CONF.project
    event = RunEvent.objects.get(name="tenant.created")
    assert event.detail == f"ann: {tmp_path / 'fleet'}"


def test_a_path_that_is_no_directory_is_refused(fleet: Fleet, tmp_path: Path):
    (tmp_path / "file").write_text("x")
    (tmp_path / "loop").symlink_to(tmp_path / "loop")
    for name, reason in {
        "missing": "does not exist: create it",
        "file": "is not a directory",
        "loop": "does not exist: create it",
        " ": "does not exist",
    }.items():
        with pytest.raises(Refused, match=reason):
            create("acme", tmp_path / name)
    with pytest.raises(Refused, match="--project: give the directory"):
        create("acme", " ")
    assert not Tenant.objects.filter(name="acme").exists()


def test_a_directory_that_may_not_be_read_is_refused(
    fleet: Fleet, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    """Root may read all: the answer of the system is replaced."""
    monkeypatch.setattr("os.access", lambda path, _mode: Path(path) != tmp_path)
    with pytest.raises(Refused, match="cannot be read by the user of Drover"):
        create("acme", tmp_path)


def test_directories_of_two_tenants_must_not_overlap(fleet: Fleet, tmp_path: Path):
    (tmp_path / "fleets" / "acme" / "inner").mkdir(parents=True)
    (tmp_path / "other").symlink_to(tmp_path / "fleets" / "acme")
    create("acme", tmp_path / "fleets" / "acme")
    for path, reason in {
        "fleets/acme": "is that of the tenant acme",
        "other": "is that of the tenant acme",
        "fleets/acme/inner": "is inside .*, that of the tenant acme",
        "fleets": "contains .*, that of the tenant acme",
    }.items():
        with pytest.raises(Refused, match=reason):
            create("second", tmp_path / path)
    # A name with the same beginning is another directory.
    (tmp_path / "fleets" / "acme-two").mkdir()
    create("second", tmp_path / "fleets" / "acme-two")


def test_the_directories_of_the_installation_are_refused(fleet: Fleet):
    (CONF.data / "mine").mkdir(parents=True, exist_ok=True)
    for path, reason in {
        CONF.project: "is that of the tenant default",
        CONF.data / "mine": "is inside .*, the data directory of Drover",
        CONF.data.parent: "contains ",
    }.items():
        with pytest.raises(Refused, match=reason):
            create("acme", path)


def test_the_directory_is_changed(fleet: Fleet, tmp_path: Path):
    for name in ("old", "new"):
        (tmp_path / name).mkdir()
    tenant = create("acme", tmp_path / "old")
    assert change_project(tenant, str(tmp_path / "new"), "bob", NOON) == str(tmp_path / "new")
    # Its own old directory is free again.
    create("second", tmp_path / "old")
    with pytest.raises(Refused, match="that of the tenant second"):
        change_project(tenant, str(tmp_path / "old"), "bob", NOON)
    assert RunEvent.objects.get(name="tenant.project_changed").detail == f"bob: {tmp_path / 'new'}"
    with pytest.raises(Refused, match="is DROVER_PROJECT: set the variable"):
        change_project(fleet.tenant, str(tmp_path / "new"), "bob", NOON)


def test_a_directory_that_has_changed_since_is_a_problem(fleet: Fleet, tmp_path: Path):
    (tmp_path / "mine").mkdir()
    (tmp_path / "theirs").mkdir()
    tenant = create("acme", tmp_path / "mine")
    create("second", tmp_path / "theirs")
    assert project_problem(tenant) == ""
    (tmp_path / "mine").rmdir()
    assert "does not exist: create it, or set another one: manage.py tenant project acme DIR" in (
        project_problem(tenant)
    )
    (tmp_path / "mine").symlink_to(tmp_path / "theirs")
    assert "is reached through a symbolic link now" in project_problem(tenant)
    assert project_problem(fleet.tenant) == ""
