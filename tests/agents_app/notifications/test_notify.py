"""The duty that reports failures: in order, at least once, and one slow channel delays no other."""

import json
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from datetime import timedelta

import pytest

from agents_app.conf import CONF
from agents_app.maintenance import findings, fleet_checks
from agents_app.models import NotifyTarget, RunEvent, Tenant
from agents_app.notifications import announce, outgoing, targets
from agents_app.notifications import send as module
from agents_app.notifications.send import notify
from agents_app.project.config_rows import sync_notification_targets
from agents_app.skills.specs import NotifySpec
from agents_app.webhooks.providers import PROVIDERS, Signed
from tests.agents_app.fleet import NOON, Fleet, at
from tests.agents_app.receiver import Receiver, receiving

# On PostgreSQL an event is told when it has settled.
SOON = at(10)


@pytest.fixture
def receiver() -> Iterator[Receiver]:
    with receiving() as found:
        yield found


@pytest.fixture(autouse=True)
def _loopback_is_meant(monkeypatch: pytest.MonkeyPatch) -> None:
    conf = replace(CONF, outgoing_hosts=frozenset({"127.0.0.1"}))
    monkeypatch.setattr(module, "CONF", conf)


@pytest.fixture
def fail(fleet: Fleet) -> Callable[..., int]:
    agent = fleet.agent(scale=100)

    def failed(now=NOON, state: str = "failed", error: str = "exit code 1") -> int:
        job = fleet.start(fleet.enqueue(agent, now), now)
        fleet.finish(job, state, now, error=error, exit_code=1)
        return job.run_id

    return failed


def target(fleet: Fleet, url: str, **fields: object) -> NotifyTarget:
    sync_notification_targets(fleet.tenant, [NotifySpec(url=url, **fields)])  # type: ignore[arg-type]
    return NotifyTarget.objects.get(url=url)


def told(receiver: Receiver) -> list[int]:
    """The runs, in the order of the letters."""
    return [json.loads(request.body)["data"]["run_id"] for request in receiver.requests]


def test_a_failure_is_told_once_and_a_success_is_not(fleet: Fleet, receiver: Receiver, fail):
    row = target(fleet, receiver.url)
    fail(state="succeeded")
    run_id = fail()
    notify(SOON)
    notify(at(20))
    assert told(receiver) == [run_id]
    row.refresh_from_db()
    assert (row.failures, row.last_error) == (0, "")


@pytest.mark.parametrize("state", ["failed", "timed_out", "lost", "dead"])
def test_every_kind_of_failure_is_told(fleet: Fleet, receiver: Receiver, fail, state):
    target(fleet, receiver.url)
    fail(state=state)
    notify(SOON)
    assert [json.loads(r.body)["type"] for r in receiver.requests] == [f"run.{state}"]


def test_what_is_told_can_be_chosen(fleet: Fleet, receiver: Receiver, fail):
    target(fleet, receiver.url, on=("run.succeeded",))
    fail()
    good = fail(state="succeeded")
    notify(SOON)
    assert told(receiver) == [good]


def test_the_notice_of_a_hook_is_told_whatever_events_a_target_wants(
    fleet: Fleet, receiver: Receiver
):
    target(fleet, receiver.url, on=("run.lost",))
    job = fleet.start(fleet.enqueue(fleet.agent()))
    announce(job, "the report is out", NOON)
    notify(SOON)
    (request,) = receiver.requests
    body = json.loads(request.body)
    assert (body["type"], body["data"]["run_id"]) == ("run.notified", job.run_id)
    assert (body["data"]["message"], body["data"]["error"]) == ("the report is out", "")
    target(fleet, receiver.url, on=("run.lost",), format="slack")
    announce(job, "once <more>", NOON)
    notify(at(20))
    text = json.loads(receiver.requests[-1].body)["text"]
    assert text == f"reporter: run {job.run_id}: once &lt;more&gt;"


def test_a_new_target_is_not_told_of_the_past(fleet: Fleet, receiver: Receiver, fail):
    fail()
    target(fleet, receiver.url)
    notify(SOON)
    assert receiver.requests == []


def test_a_target_that_stays_in_the_file_keeps_its_place(fleet: Fleet, receiver: Receiver, fail):
    target(fleet, receiver.url)
    run_id = fail()
    target(fleet, receiver.url, format="slack")
    notify(SOON)
    assert str(run_id) in json.loads(receiver.requests[0].body)["text"]
    sync_notification_targets(fleet.tenant, [])
    assert not NotifyTarget.objects.exists()


def test_a_letter_is_signed_with_a_secret_from_outside(
    fleet: Fleet, receiver: Receiver, fail, monkeypatch, caplog, capfd
):
    """And its URL is nowhere in the log."""
    monkeypatch.setenv("NOTIFY_SECRET", "sesame-sesame")
    monkeypatch.setenv("NOTIFY_URL", f"{receiver.url}/services/T0/B0/x")
    target(fleet, "env:NOTIFY_URL", secret="env:NOTIFY_SECRET")
    fail()
    notify(SOON)
    (request,) = receiver.requests
    signed = Signed(request.headers, request.body)
    assert PROVIDERS["standard"].verify(signed, {"s": "sesame-sesame"}, SOON) == "s"
    assert request.path == "/services/T0/B0/x"
    assert "/services/" not in caplog.text + capfd.readouterr().err


def test_a_secret_that_is_not_there_is_no_reason_to_send_unsigned(
    fleet: Fleet, receiver: Receiver, fail
):
    row = target(fleet, receiver.url, secret="env:NOT_THERE")
    fail()
    notify(SOON)
    row.refresh_from_db()
    assert (receiver.requests, row.last_error) == (
        [],
        "its secret env:NOT_THERE does not exist or is empty",
    )


# --- when it does not arrive ----------------------------------------------------------------


def test_what_did_not_arrive_is_sent_again_later_with_the_same_id(
    fleet: Fleet, receiver: Receiver, fail
):
    row = target(fleet, receiver.url)
    first, second = fail(), fail()
    receiver.answers = [(500, {}, b""), (302, {"Location": "http://169.254.169.254/"}, b"")]
    notify(SOON)
    row.refresh_from_db()
    assert (row.last_error, row.next_try_at) == ("it answered with status 500", at(20))
    notify(at(19))
    assert told(receiver) == [first]
    notify(at(20))
    row.refresh_from_db()
    assert (row.failures, row.next_try_at, row.failing_since) == (2, at(40), SOON)
    notify(at(40))
    assert told(receiver) == [first, first, first, second]
    assert len({r.headers["webhook-id"] for r in receiver.requests[:3]}) == 1
    row.refresh_from_db()
    assert (row.failures, row.failing_since, row.last_error) == (0, None, "")


def test_what_arrived_before_a_failure_is_not_sent_again(fleet: Fleet, receiver: Receiver, fail):
    target(fleet, receiver.url)
    runs = [fail(), fail(), fail()]
    receiver.answers = [(200, {}, b""), (503, {}, b"")]
    notify(SOON)
    notify(at(60))
    assert told(receiver) == [runs[0], runs[1], runs[1], runs[2]]


def test_waiting_grows_up_to_a_limit(fleet: Fleet, receiver: Receiver, fail):
    row = target(fleet, receiver.url)
    fail()
    receiver.status = 500
    now = SOON
    for _ in range(9):
        notify(now)
        row.refresh_from_db()
        assert row.next_try_at is not None
        waited, now = row.next_try_at - now, row.next_try_at
    assert waited == timedelta(minutes=10)


def test_after_a_day_it_is_given_up_and_noted(fleet: Fleet, receiver: Receiver, fail):
    row = target(fleet, receiver.url)
    fail()
    fail(now=at(60))
    young = fail(now=at(hours=20))
    receiver.status = 500
    notify(at(120, days=1))
    (entry,) = RunEvent.objects.filter(name="notify.given_up")
    assert entry.detail == "127.0.0.1 did not receive 2 notices: it answered with status 500"
    receiver.status = 200
    notify(at(200, days=1))
    assert told(receiver)[-1] == young
    row.refresh_from_db()
    assert row.failing_since is None


def test_one_that_is_dead_holds_up_no_other(fleet: Fleet, receiver: Receiver, fail, monkeypatch):
    monkeypatch.setattr(outgoing, "SECONDS", 0.5)
    with receiving() as silent:
        silent.pace = "silent"
        specs = [NotifySpec(url=url) for url in (silent.url, receiver.url)]
        sync_notification_targets(fleet.tenant, specs)
        runs = [fail() for _ in range(3)]
        began = time.monotonic()
        notify(SOON)
    assert time.monotonic() - began < 3
    assert told(receiver) == runs
    assert NotifyTarget.objects.filter(failing_since=SOON).get().url == silent.url


def test_a_target_inside_is_not_called_unless_it_was_named(
    fleet: Fleet, receiver: Receiver, fail, monkeypatch
):
    monkeypatch.setattr(module, "CONF", CONF)
    row = target(fleet, receiver.url)
    fail()
    notify(SOON)
    row.refresh_from_db()
    assert receiver.requests == []
    assert "DROVER_OUTGOING_HOSTS" in row.last_error


def test_the_doctor_tells_of_targets_that_do_not_answer_and_hides_their_secrets(
    fleet: Fleet, receiver: Receiver, fail
):
    target(fleet, f"{receiver.url}/services/secret-path")
    receiver.status = 404
    fail()
    notify(SOON)
    ((verdict, detail, advice),) = fleet_checks.check_notifications(SOON)
    assert verdict == findings.WARNING
    assert detail == "127.0.0.1: it answered with status 404 (since 2026-03-02 12:00 UTC)"
    assert "[[notify]]" in advice


def test_a_disabled_tenant_tells_nothing(fleet: Fleet, receiver: Receiver, fail):
    target(fleet, receiver.url)
    fail()
    Tenant.objects.update(disabled_at=NOON)
    notify(SOON)
    assert receiver.requests == []


def test_many_are_told_over_several_rounds(fleet: Fleet, receiver: Receiver, fail, monkeypatch):
    monkeypatch.setattr(module, "MAX_NOTICES", 3)
    monkeypatch.setattr(targets, "MAX_NOTICES", 3)
    target(fleet, receiver.url)
    runs = [fail() for _ in range(8)]
    for turn in range(3):
        notify(at(10 + turn))
    assert told(receiver) == runs
