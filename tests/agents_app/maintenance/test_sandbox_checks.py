"""doctor, the page of a run and the API say whether runs are confined and what does not hold."""

import pytest

from agents_app.admin.run_page import RunFacts
from agents_app.maintenance import sandbox_checks
from agents_app.models import Run
from agents_app.runners import Kernel, gate
from gateway_app.api.run_shapes import run_shape
from tests.agents_app.fleet import NOON, Fleet

pytestmark = pytest.mark.django_db


def findings(monkeypatch: pytest.MonkeyPatch, kernel: Kernel) -> list[tuple[str, str]]:
    monkeypatch.setattr(sandbox_checks, "this_kernel", lambda: kernel)
    return [(verdict, detail) for verdict, detail, _ in sandbox_checks.check_sandbox(NOON)]


def test_doctor_names_each_promise_that_does_not_hold(fleet: Fleet, monkeypatch):
    assert findings(monkeypatch, Kernel(7, True)) == [("ok", "every promise holds (Landlock 7)")]
    assert [verdict for verdict, _ in findings(monkeypatch, Kernel(2, True))] == ["warning"] * 2
    ((verdict, detail),) = findings(monkeypatch, Kernel(0, False))
    assert (verdict, detail[:25]) == ("warning", "this kernel has none: run")


def test_doctor_names_agents_without_a_sandbox_and_agents_that_cannot_run(
    fleet: Fleet, monkeypatch
):
    fleet.agent("free", runtime={"sandbox": {"mode": "off"}})
    fleet.agent("boxed", runtime={"type": "container", "sandbox": {"mode": "off"}})
    fleet.agent("strict", runtime={"sandbox": {"mode": "required"}})
    assert ("warning", "switched off by: free") in findings(monkeypatch, Kernel(7, True))
    wrong = ("wrong", "strict requires every promise: its runs fail")
    assert wrong not in findings(monkeypatch, Kernel(7, True))
    assert wrong in findings(monkeypatch, Kernel(2, True))


def test_doctor_warns_where_programs_cannot_wait_for_their_limits(fleet: Fleet, monkeypatch):
    late = ("warning", sandbox_checks.LATE_LIMITS)
    assert late not in findings(monkeypatch, Kernel(7, True))
    monkeypatch.setattr(gate, "gate_file", lambda: -1)
    assert late in findings(monkeypatch, Kernel(7, True))


@pytest.mark.parametrize(
    ("stored", "page", "confined", "missing"),
    [
        ("", "", None, []),
        ("on", "in a sandbox", True, []),
        ("on -signals", "in a sandbox, without: signals", True, ["signals"]),
        ("off", "no sandbox: switched off by the agent", False, None),
        ("none", "no sandbox: this kernel has none", False, None),
    ],
)
def test_the_page_and_the_api_say_how_a_run_was_confined(
    fleet: Fleet, stored, page, confined, missing
):
    job = fleet.start(fleet.enqueue(fleet.agent()))
    fleet.finish(job, sandbox=stored)
    run = Run.objects.select_related("agent", "worker").get(pk=job.run_id)
    assert RunFacts(run, NOON).sandbox == page
    shown = run_shape(run).sandbox
    assert shown.confined is confined
    if missing is not None:
        assert shown.missing == missing
    else:
        assert "files" in shown.missing
