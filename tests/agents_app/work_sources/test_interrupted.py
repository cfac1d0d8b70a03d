"""Processes that end between two steps of a claim: the next one finishes or undoes it."""

from datetime import UTC, datetime, timedelta

import pytest

from agents_app.models import WorkClaim, WorkSource
from agents_app.work_sources import claims, lease
from agents_app.work_sources.kinds.api import WorkSourceError
from agents_app.work_sources.lease import LEASE, SourceLease
from agents_app.work_sources.poll import serve_source
from tests.agents_app.fleet import Fleet, at
from tests.agents_app.work_sources.github_server import GitHubServer, Request
from tests.agents_app.work_sources.polling import (
    decided,
    finish,
    fire_and_poll,
    github_source,
    poll,
    scheduled,
)


class Killed(BaseException):
    """Ends the poll as SIGKILL does: no handler runs its course."""


def clock() -> datetime:
    return datetime.now(UTC)


@pytest.fixture
def schedule(fleet: Fleet, github: GitHubServer):
    return scheduled(fleet, github_source(github))


def killed_after(github: GitHubServer, monkeypatch, step: int) -> None:
    """The poll ends after its request with this number has taken effect, and leaves its lease."""
    made = 0

    def count(self: SourceLease) -> None:
        nonlocal made
        made += 1
        if made > step:
            raise Killed

    monkeypatch.setattr(SourceLease, "renew", count)
    monkeypatch.setattr(SourceLease, "give_back", lambda _self: None)
    with pytest.raises(Killed):
        poll()
    monkeypatch.undo()


def abandon_leases() -> None:
    """The process that holds them is gone."""
    WorkSource.objects.update(busy_by="elsewhere|boot|1|0.0|x", busy_until=clock() - LEASE)


# The last test of this file shows the requests.
@pytest.mark.parametrize("step", range(1, 10))
@pytest.mark.fault("F80")
def test_a_claim_of_a_killed_process_is_released_and_taken_up_again(
    fleet: Fleet, github: GitHubServer, schedule, monkeypatch, step
):
    issue = github.add(5)
    firing = fleet.fire(schedule)
    with monkeypatch.context() as patch:
        killed_after(github, patch, step)
    abandon_leases()
    poll()
    firing.refresh_from_db()
    assert decided(firing) == ("started", "")
    assert issue.labels == ["agent-working"]
    assert WorkClaim.objects.filter(stage="claimed").count() == 1
    finish(fleet, firing)
    assert (issue.state, issue.labels) == ("closed", [])


# GET comments, POST comment or not, DELETE label, PATCH or POST label.
@pytest.mark.parametrize("step", range(3))
@pytest.mark.parametrize("state", ["succeeded", "failed"])
def test_a_report_of_a_killed_process_is_finished_by_the_next(
    fleet: Fleet, github: GitHubServer, schedule, monkeypatch, step, state
):
    issue = github.add(5)
    firing = fire_and_poll(fleet, schedule)
    job = fleet.start(firing.work_item)
    fleet.finish(job, state, error="" if state == "succeeded" else "exit code 1")
    with monkeypatch.context() as patch:
        killed_after(github, patch, step)
    abandon_leases()
    # Later: whether another Drover has claimed the released issue is certain by then.
    poll(clock() + timedelta(minutes=5))
    expected = ("closed", []) if state == "succeeded" else ("open", ["ready"])
    assert (issue.state, issue.labels) == expected
    written = [text for text in github.said(5) if "Done by" in text or "no longer works" in text]
    assert len(written) == 1


def test_a_released_issue_that_another_drover_has_claimed_is_left_to_it(
    fleet: Fleet, github: GitHubServer, schedule, monkeypatch
):
    """The report was complete, but the process died before it stored that."""
    issue = github.add(5)
    firing = fire_and_poll(fleet, schedule)
    fleet.finish(fleet.start(firing.work_item), "failed", error="exit code 1")
    with monkeypatch.context() as patch:
        patch.setattr(claims, "end_claim", lambda *_, **__: None)
        poll()
    assert issue.labels == ["ready"]
    github.comment(5, f"<!-- drover:claim {'f' * 32} -->")
    issue.labels = ["agent-working"]
    poll(clock() + timedelta(minutes=5))
    assert issue.labels == ["agent-working"]
    assert WorkClaim.objects.get().outcome == "released"


def test_a_released_issue_that_may_be_claimed_just_now_is_looked_at_later(
    fleet: Fleet, github: GitHubServer, schedule, monkeypatch
):
    issue = github.add(5)
    firing = fire_and_poll(fleet, schedule)
    fleet.finish(fleet.start(firing.work_item), "failed", error="exit code 1")
    with monkeypatch.context() as patch:
        patch.setattr(claims, "end_claim", lambda *_, **__: None)
        poll()
    # Another Drover has changed the label and has not written its comment yet.
    issue.labels = ["agent-working"]
    poll(clock() + timedelta(seconds=30))
    assert issue.labels == ["agent-working"]
    assert WorkClaim.objects.get().stage == "claimed"


# --- the lease --------------------------------------------------------------------------------


@pytest.fixture
def source(fleet: Fleet, github: GitHubServer) -> WorkSource:
    return claims.source_row(fleet.tenant.pk, github_source(github))


def test_a_source_is_served_by_one_process_at_a_time(source):
    first, second = SourceLease(source.pk, clock), SourceLease(source.pk, clock)
    assert first.take()
    assert not second.take()
    first.give_back()
    assert second.take()


def test_a_dead_process_of_this_host_is_replaced_at_once(source, monkeypatch):
    assert SourceLease(source.pk, clock).take()
    monkeypatch.setattr(lease, "is_alive", lambda _worker: False)
    assert SourceLease(source.pk, clock).take()


def test_a_silent_process_of_another_host_is_replaced_when_its_lease_ends(source, monkeypatch):
    with monkeypatch.context() as patch:
        patch.setattr(lease, "this_host", lambda: "elsewhere")
        assert SourceLease(source.pk, clock).take()
    assert not SourceLease(source.pk, clock).take()
    later = SourceLease(source.pk, lambda: clock() + LEASE + timedelta(seconds=1))
    assert later.take()


def test_a_lease_is_renewed_and_a_lost_one_stops_the_poll(source):
    now = at(0)
    held = SourceLease(source.pk, lambda: now)
    assert held.take()
    now = at(60)
    held.renew()
    source.refresh_from_db()
    assert source.busy_until == at(60) + LEASE
    WorkSource.objects.update(busy_by="another")
    now = at(120)
    with pytest.raises(WorkSourceError, match="taken over"):
        held.renew()


def test_a_source_that_is_being_served_is_left_alone(fleet: Fleet, github: GitHubServer, source):
    assert SourceLease(source.pk, clock).take()
    serve_source(source.pk)
    assert github.requests == []


def test_the_requests_of_a_poll_are_counted_as_the_tests_above_assume(
    fleet: Fleet, github: GitHubServer, schedule
):
    github.add(5)
    fire_and_poll(fleet, schedule)
    assert [_short(request) for request in github.requests] == [
        *("GET issues", "GET 5", "POST labels", "DELETE ready", "GET 5"),
        *("POST comments", "GET comments", "GET 5", "GET 5", "GET comments"),
    ]


def _short(request: Request) -> str:
    return f"{request.method} {request.path.rpartition('/')[2]}"
