"""Issues of GitHub through real HTTP: the way of an issue, and answers that are no success."""

import json
import time

import pytest

from agents_app.models import Agent, Run, WorkClaim
from agents_app.runs import control, dispatch
from agents_app.work_sources.kinds.github import GitHubIssues
from tests.agents_app.fleet import Fleet, at
from tests.agents_app.work_sources.github_server import TOKEN, Fault, GitHubServer
from tests.agents_app.work_sources.polling import (
    WAITED,
    claim_rows,
    decided,
    finish,
    fire_and_poll,
    github_source,
    poll,
    scheduled,
    work_of,
)

LIMITED = {"X-RateLimit-Remaining": "0", "X-RateLimit-Limit": "5000"}


@pytest.fixture
def schedule(fleet: Fleet, github: GitHubServer):
    return scheduled(fleet, github_source(github))


def source(fleet: Fleet):
    return fleet.tenant.work_sources.get()


# --- the way of an issue ----------------------------------------------------------------------


def test_an_issue_is_claimed_worked_on_reported_and_closed(
    fleet: Fleet, github: GitHubServer, schedule
):
    issue = github.add(5, "Count the sheep", body="There are many.")
    github.comment(5, "At least ten.", "NONE", "bob")
    firing = fire_and_poll(fleet, schedule)
    assert decided(firing) == ("started", "")
    assert issue.labels == ["agent-working"]
    context = json.loads(work_of(firing).context)
    assert (context["title"], context["body"]) == ("Count the sheep", "There are many.")
    assert context["url"] == "https://github.test/o/r/issues/5"
    assert [each["text"] for each in context["comments"]] == ["At least ten."]
    run = Run.objects.get(work_item=work_of(firing))
    Run.objects.filter(pk=run.pk).update(return_value="There are 12.", cost_usd="0.25")
    finish(fleet, firing)
    assert (issue.state, issue.labels) == ("closed", [])
    report = github.said(5)[-1]
    assert "There are 12." in report
    assert f"cost $0.25 · https://drover.test/admin/runs/{run.pk}/" in report
    assert claim_rows() == [("github-5", "ended", "succeeded")]


def test_urgent_issues_are_first_then_old_ones_and_never_pull_requests(
    fleet: Fleet, github: GitHubServer, schedule
):
    github.add(1, pull_request=True)
    github.add(2, labels=("ready", "slow-query"))
    github.add(3, labels=("ready", "urgent"))
    github.add(4, labels=("ready", "blocked", "p0"))
    fire_and_poll(fleet, schedule)
    assert WorkClaim.objects.get().item_id == "github-3"
    assert [each["id"] for each in source(fleet).queue] == ["github-3", "github-2"]


def test_an_urgent_issue_on_a_later_page_is_first(fleet: Fleet, github: GitHubServer, schedule):
    for number in range(1, 110):
        github.add(number)
    github.issues[108].labels.append("critical")
    fire_and_poll(fleet, schedule)
    assert WorkClaim.objects.get().item_id == "github-108"


def test_a_failed_run_releases_the_issue_and_gives_up_after_three(
    fleet: Fleet, github: GitHubServer, schedule
):
    issue = github.add(5)
    for attempt in range(1, 4):
        firing = fire_and_poll(fleet, schedule, at(60 * attempt))
        finish(fleet, firing, "failed", at(60 * attempt), error="exit code 1")
        assert issue.labels == (["ready"] if attempt < 3 else [])
    assert "does not try again" in github.said(5)[-1]
    assert issue.state == "open"
    assert [outcome for _, _, outcome in claim_rows()] == ["released", "released", "failed"]
    assert decided(fire_and_poll(fleet, schedule, at(600))) == ("skipped", "no_work")


def test_without_cleanup_a_failed_issue_is_not_ready_again(fleet: Fleet, github: GitHubServer):
    schedule = scheduled(fleet, github_source(github, cleanup_on_failure=False))
    issue = github.add(5)
    finish(fleet, fire_and_poll(fleet, schedule), "stopped", error="stopped by ann")
    assert issue.labels == []
    assert "stopped by ann" in github.said(5)[-1]


def test_work_that_is_stopped_before_its_start_releases_its_issue(
    fleet: Fleet, github: GitHubServer, schedule
):
    issue = github.add(5)
    firing = fire_and_poll(fleet, schedule)
    dispatch.request_stop(Run.objects.filter(work_item=work_of(firing)), at(1), "stopped by ann")
    poll()
    assert issue.labels == ["ready"]
    assert WorkClaim.objects.get().failed_attempts == 0


def test_work_that_is_retried_keeps_its_issue(fleet: Fleet, github: GitHubServer, schedule):
    issue = github.add(5)
    schedule.agent.retries = 2
    schedule.agent.save()
    finish(fleet, fire_and_poll(fleet, schedule), "failed", error="exit code 1")
    assert issue.labels == ["agent-working"]
    assert claim_rows() == [("github-5", "claimed", "")]


# --- ETag and limits --------------------------------------------------------------------------


def test_an_unchanged_list_is_not_sent_again_and_is_used(
    fleet: Fleet, github: GitHubServer, schedule
):
    fire_and_poll(fleet, schedule)
    assert source(fleet).etag
    fire_and_poll(fleet, schedule, at(60))
    assert "if-none-match" in github.requests[-1].headers
    github.add(5)
    assert decided(fire_and_poll(fleet, schedule, at(120))) == ("started", "")


def test_a_used_up_limit_is_waited_for_without_further_requests(
    fleet: Fleet, github: GitHubServer, schedule
):
    github.add(5)
    reset = int(time.time()) + 600
    github.faults.append(Fault("GET", 403, {**LIMITED, "X-RateLimit-Reset": str(reset)}))
    assert decided(fire_and_poll(fleet, schedule)) == ("skipped", "source_failed")
    assert len(github.requests) == 1
    assert decided(fire_and_poll(fleet, schedule, at(60))) == ("skipped", "source_failed")
    assert len(github.requests) == 1
    blocked = source(fleet).blocked_until
    assert blocked is not None and int(blocked.timestamp()) == reset
    fleet.fire(schedule, at(120))
    poll(blocked)
    assert WorkClaim.objects.get().stage == "claimed"


def test_a_limit_that_ends_soon_is_waited_for_within_the_poll(
    fleet: Fleet, github: GitHubServer, schedule
):
    github.add(5)
    github.faults.append(Fault("GET", 429, {"Retry-After": "7"}))
    assert decided(fire_and_poll(fleet, schedule)) == ("started", "")
    assert 7 < WAITED[0] <= 8


def test_errors_of_the_server_are_tried_again_three_times(
    fleet: Fleet, github: GitHubServer, schedule
):
    github.add(5)
    github.faults.append(Fault("GET", 502, count=3))
    assert decided(fire_and_poll(fleet, schedule)) == ("started", "")
    assert [round(seconds) for seconds in WAITED[:3]] == [1, 2, 4]


def test_a_wrong_token_is_not_tried_again_and_says_what_to_do(
    fleet: Fleet, github: GitHubServer, schedule, tmp_path
):
    (tmp_path / "token").write_text("another")
    assert decided(fire_and_poll(fleet, schedule)) == ("skipped", "source_failed")
    assert "status 401: Bad credentials" in source(fleet).last_error
    assert len(github.requests) == 1


def test_a_missing_secret_makes_no_request(fleet: Fleet, github: GitHubServer):
    schedule = scheduled(fleet, github_source(github, auth="github_token:work"))
    fire_and_poll(fleet, schedule)
    assert "manage.py credential set github_token:work" in source(fleet).last_error
    assert github.requests == []


def test_the_token_is_in_no_row_and_no_log_line(fleet: Fleet, github: GitHubServer, capfd):
    schedule = scheduled(fleet, github_source(github))
    github.faults.append(Fault("GET", 500, count=9))
    fire_and_poll(fleet, schedule)
    row = source(fleet)
    assert TOKEN not in repr({name: getattr(row, name) for name in ("last_error", "settings")})
    assert TOKEN not in "".join(capfd.readouterr())


# --- claims that fail -------------------------------------------------------------------------


def test_a_conflict_leaves_the_issue_as_it_was_and_takes_the_next(
    fleet: Fleet, github: GitHubServer, schedule
):
    github.add(5)
    github.add(6)
    github.faults.append(Fault("POST .*/5/labels", 409))
    fire_and_poll(fleet, schedule)
    assert github.issues[5].labels == ["ready"]
    assert claim_rows() == [
        ("github-5", "ended", "not_claimed"),
        ("github-6", "claimed", ""),
    ]


def test_an_issue_that_another_drover_claims_at_the_same_time_is_left_to_it(
    fleet: Fleet, github: GitHubServer, schedule
):
    """The other claim is written after our labels and before our comment."""
    issue = github.add(5)

    def interfere(request):
        if str(request) == "DELETE /repos/o/r/issues/5/labels/ready":
            github.comment(5, f"<!-- drover:claim {'f' * 32} -->")

    github.after = interfere
    assert decided(fire_and_poll(fleet, schedule)) == ("skipped", "no_work")
    assert issue.labels == ["agent-working"]
    assert len(issue.comments) == 1
    assert claim_rows() == [("github-5", "ended", "not_claimed")]


def test_a_comment_of_a_stranger_cannot_take_an_issue_away(
    fleet: Fleet, github: GitHubServer, schedule
):
    github.add(5)
    github.comment(5, f"<!-- drover:claim {'f' * 32} -->", "NONE", "stranger")
    assert decided(fire_and_poll(fleet, schedule)) == ("started", "")


@pytest.mark.parametrize(
    "pattern",
    [
        "POST .*/5/labels",
        "DELETE .*/5/labels/ready",
        "POST .*/5/comments",
        "GET .*/5/comments",
        "GET .*/issues/5$",
    ],
)
@pytest.mark.parametrize("applied", [True, False])
def test_a_claim_that_breaks_off_is_undone_and_the_issue_is_not_lost(
    fleet: Fleet, github: GitHubServer, schedule, pattern, applied
):
    issue = github.add(5)
    github.faults.append(Fault(pattern, 500, count=4, applied=applied))
    fire_and_poll(fleet, schedule)
    github.faults.clear()
    for _ in range(2):
        poll()
    if WorkClaim.objects.filter(stage="claimed").exists():
        return  # the request was repeated with success
    assert issue.labels == ["ready"]
    assert decided(fire_and_poll(fleet, schedule, at(60))) == ("started", "")
    assert issue.labels == ["agent-working"]


@pytest.mark.parametrize(
    "pattern", ["POST .*/5/comments", "DELETE .*/labels/agent-working", "PATCH"]
)
@pytest.mark.parametrize("applied", [True, False])
def test_a_report_that_breaks_off_is_repeated_and_written_once(
    fleet: Fleet, github: GitHubServer, schedule, pattern, applied
):
    issue = github.add(5)
    firing = fire_and_poll(fleet, schedule)
    github.faults.append(Fault(pattern, 500, count=4, applied=applied))
    finish(fleet, firing)
    github.faults.clear()
    WorkClaim.objects.update(next_try_at=None)
    poll()
    assert (issue.state, issue.labels) == ("closed", [])
    assert sum("Done by" in text for text in github.said(5)) == 1
    assert claim_rows() == [("github-5", "ended", "succeeded")]


def test_an_issue_that_was_closed_meanwhile_is_not_worked_on(
    fleet: Fleet, github: GitHubServer, schedule
):
    issue = github.add(5)

    def close(request):
        if str(request).endswith("/5/comments") and request.method == "POST":
            issue.state = "closed"

    github.after = close
    assert decided(fire_and_poll(fleet, schedule)) == ("skipped", "no_work")
    assert (issue.labels, issue.comments) == ([], [])


def test_a_disabled_agent_gives_its_issue_back(
    fleet: Fleet, github: GitHubServer, schedule, monkeypatch
):
    issue = github.add(5)
    confirm = GitHubIssues.confirm

    def disabled(self, item_id, mark):
        Agent.objects.update(scale=0)
        return confirm(self, item_id, mark)

    monkeypatch.setattr(GitHubIssues, "confirm", disabled)
    assert decided(fire_and_poll(fleet, schedule)) == ("skipped", "disabled")
    poll()
    assert issue.labels == ["ready"]


def test_an_agent_that_was_paused_meanwhile_claims_nothing(
    fleet: Fleet, github: GitHubServer, schedule
):
    issue = github.add(5)
    firing = fleet.fire(schedule)
    Agent.objects.update(paused_at=at(0))
    poll()
    firing.refresh_from_db()
    assert decided(firing) == ("skipped", "paused")
    assert (issue.labels, github.requests) == (["ready"], [])


def test_a_deleted_issue_is_given_up_at_last(fleet: Fleet, github: GitHubServer, schedule):
    github.add(5)
    firing = fire_and_poll(fleet, schedule)
    del github.issues[5]
    finish(fleet, firing)
    assert "status 404" in WorkClaim.objects.get().last_error
    for _ in range(20):
        WorkClaim.objects.update(next_try_at=None)
        poll()
    assert claim_rows() == [("github-5", "ended", "released")]


def test_cleared_work_whose_issue_was_given_back_is_not_restored(
    fleet: Fleet, github: GitHubServer, schedule
):
    issue = github.add(5)
    fire_and_poll(fleet, schedule)
    control.begin_drain("ann", at(1), keep_queue=False)
    poll()
    assert issue.labels == ["ready"]
    assert control.restore_cleared(fleet.tenant, "ann", at(2)) == 0
