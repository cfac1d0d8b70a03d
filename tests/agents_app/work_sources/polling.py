"""Common steps of tests of work sources: a schedule with a source, its polls, and its runs."""

from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from agents_app.models import Agent, Firing, Schedule, WorkClaim, WorkItem
from agents_app.work_sources import claims
from agents_app.work_sources.poll import serve_source
from tests.agents_app.fleet import NOON, Fleet
from tests.agents_app.work_sources.github_server import GitHubServer

WAITED: list[float] = []


def github_source(github: GitHubServer, **more: Any) -> dict[str, Any]:
    return {"type": "github", "repo": "o/r", "url": github.url, "auth": "file:token", **more}


def directory_source(path: Path, **more: Any) -> dict[str, Any]:
    return {"type": "directory", "path": str(path), **more}


def scheduled(fleet: Fleet, source: dict[str, Any], **columns: Any) -> Schedule:
    agent = fleet.agent(work_source=source, **columns)
    return fleet.schedule(agent)


def poll(now: datetime | None = None) -> None:
    """One round of the duty, on this thread; waiting is noted and not done."""
    moment = now or datetime.now(UTC)
    for source_id in sorted(claims.sources_with_work(moment)):
        serve_source(source_id, lambda: moment, WAITED.append)


def fire_and_poll(fleet: Fleet, schedule: Schedule, now: datetime = NOON) -> Firing:
    firing = fleet.fire(schedule, now)
    if firing.outcome == "polling":
        poll()
        firing.refresh_from_db()
    return firing


def decided(firing: Firing) -> tuple[str, str]:
    return firing.outcome, firing.reason


def work_of(firing: Firing) -> WorkItem:
    return WorkItem.objects.get(firing=firing)


def finish(
    fleet: Fleet, firing: Firing, state: str = "succeeded", now: datetime = NOON, **how: Any
) -> None:
    """Its run starts and ends in this state; then the duty reports it."""
    job = fleet.start(work_of(firing), now)
    fleet.finish(job, state, now, **how)
    poll()


def claim_rows(agent: Agent | None = None) -> list[tuple[str, str, str]]:
    rows = WorkClaim.objects.order_by("id")
    rows = rows.filter(agent=agent) if agent else rows
    return list(rows.values_list("item_id", "stage", "outcome"))
