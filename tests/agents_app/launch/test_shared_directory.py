"""The project's `shared/` directory: every run finds it, unless it is a link out of the project."""

from dataclasses import replace
from pathlib import Path

import pytest

from agents_app.conf import CONF
from agents_app.models import tenant
from agents_app.runners import RUNNERS
from agents_app.runners.base import Mount, Outcome, RunSpec
from agents_app.worker.execute import Host
from tests.agents_app.executing import do, printed, shell
from tests.agents_app.fleet import Fleet


@pytest.fixture
def root(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(tenant, "CONF", replace(CONF, project=tmp_path))
    return tmp_path


def mounts(fleet: Fleet, host: Host, monkeypatch: pytest.MonkeyPatch, **runtime: object) -> tuple:
    seen: list[RunSpec] = []

    class Looking:
        def run(self, spec, _control, _sink):
            seen.append(spec)
            return Outcome("exited", 0)

    monkeypatch.setitem(RUNNERS, "looking", Looking())
    do(fleet, host, fleet.agent(runtime={"type": "looking", **runtime}))
    return seen[0].mounts


def test_a_run_finds_the_shared_directory_of_its_project(fleet: Fleet, host: Host, root: Path):
    (root / "shared").mkdir()
    (root / "shared" / "style.md").write_text("be brief")
    run = do(fleet, host, fleet.agent(command=shell("cat $DROVER_SHARED_DIR/style.md")))
    assert printed(run.pk) == "be brief"


def test_without_a_shared_directory_its_variable_is_not_set(fleet: Fleet, host: Host, root: Path):
    run = do(fleet, host, fleet.agent(command=shell("echo ${DROVER_SHARED_DIR-none}")))
    assert printed(run.pk) == "none\n"


@pytest.mark.parametrize(("runtime", "writable"), [({}, False), ({"shared_writable": True}, True)])
def test_the_shared_directory_is_mounted_read_only_by_default(
    fleet: Fleet, host: Host, root: Path, monkeypatch, runtime, writable
):
    (root / "shared").mkdir()
    assert Mount(root / "shared", writable) in mounts(fleet, host, monkeypatch, **runtime)


def test_a_link_out_of_the_project_is_not_followed(
    fleet: Fleet, host: Host, root: Path, monkeypatch, tmp_path_factory
):
    outside = tmp_path_factory.mktemp("outside")
    (root / "shared").symlink_to(outside)
    paths = [mount.path for mount in mounts(fleet, host, monkeypatch)]
    assert root / "shared" not in paths


def test_runs_of_another_tenant_find_the_shared_directory_of_their_own_project(
    fleet: Fleet, host: Host, root: Path, tmp_path_factory: pytest.TempPathFactory
):
    theirs = tmp_path_factory.mktemp("acme")
    for project, text in ((root, "be brief"), (theirs, "be kind")):
        (project / "shared").mkdir()
        (project / "shared" / "style.md").write_text(text)
    acme = Fleet(tenant.Tenant.objects.create(name="acme", project=str(theirs)))
    command = shell("cat $DROVER_SHARED_DIR/style.md; echo; echo $DROVER_STATE_DIR")
    own, other = (do(each, host, each.agent(command=command)) for each in (fleet, acme))
    brief, state = printed(own.pk).splitlines()
    kind, other_state = printed(other.pk).splitlines()
    assert (brief, kind) == ("be brief", "be kind")
    # Agents of the same name have different directories.
    assert state != other_state
