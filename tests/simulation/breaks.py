"""Deliberate defects of the product, one at a time: the comparison must find each."""

from collections.abc import Callable
from dataclasses import replace
from datetime import timedelta
from functools import partial
from typing import Any
from zoneinfo import ZoneInfo

import pytest

from agents_app.runs import schedule_states
from agents_app.schedules import due, plan
from agents_app.triggers import dst, fires

Patch = pytest.MonkeyPatch
Break = Callable[[Patch], None]


def clock_changes_are_ignored(patch: Patch) -> None:
    patch.setattr(dst, "changes_between", lambda *_: ())


def every_zone_is_utc(patch: Patch) -> None:
    patch.setattr(plan, "zone", lambda _: ZoneInfo("UTC"))


def _always(patch: Patch, **policy: str) -> None:
    original = dst.next_instant

    def next_instant(next_wall: Any, after: int, zone: Any, gap: str, overlap_hour: str) -> Any:
        chosen: Any = {"gap": gap, "overlap_hour": overlap_hour, **policy}
        return original(next_wall, after, zone, **chosen)

    patch.setattr(fires, "next_instant", next_instant)


def an_interval_is_counted_from_the_claim(patch: Patch) -> None:
    original = plan._instants

    def instants(schedule: Any, now: Any) -> Any:
        found, upcoming = original(schedule, now)
        return found, upcoming and plan.fire_after(schedule, now)

    patch.setattr(plan, "_instants", instants)


def every_second_instant_is_skipped(patch: Patch) -> None:
    original = plan._instants

    def instants(schedule: Any, now: Any) -> Any:
        found, upcoming = original(schedule, now)
        return found, upcoming and plan.fire_after(schedule, upcoming)

    patch.setattr(plan, "_instants", instants)


def every_instant_fires_twice(patch: Patch) -> None:
    original = due._insert_firings

    def record(rows: Any, now: Any) -> Any:
        again = [replace(row, due_at=row.due_at + timedelta(milliseconds=1)) for row in rows]
        return original(rows + again, now)

    patch.setattr(due, "_insert_firings", record)


def one_firing_in_fifty_is_lost(patch: Patch) -> None:
    original = due._insert_firings
    patch.setattr(due, "_insert_firings", lambda rows, now: original(rows[:49] + rows[50:], now))


def beat_claims_a_minute_late(patch: Patch) -> None:
    original = due._lock_due_schedules
    patch.setattr(due, "_lock_due_schedules", lambda now: original(now - timedelta(minutes=1)))


def the_window_is_ignored(patch: Patch) -> None:
    original = plan._to_fire

    def to_fire(schedule: Any, instants: Any, now: Any) -> Any:
        schedule.catch_up_window_seconds = 10**6
        return original(schedule, instants, now)

    patch.setattr(plan, "_to_fire", to_fire)


def skip_means_last(patch: Patch) -> None:
    patch.setattr(plan, "PUNCTUAL", timedelta(hours=1))


def missed_instants_are_not_recorded(patch: Patch) -> None:
    original = due._insert_firings
    patch.setattr(
        due, "_insert_firings", lambda rows, now: original([r for r in rows if not r.outcome], now)
    )


def an_interval_does_not_wait_for_its_run(patch: Patch) -> None:
    patch.setattr(due, "read_live_states", lambda _: {})


def the_end_of_a_run_sets_no_next_fire_time(patch: Patch) -> None:
    patch.setattr(schedule_states, "settle_schedule", lambda *_: None)


def schedules_with_the_same_due_time_fire_once(patch: Patch) -> None:
    """As if the due time alone were unique."""
    original = due._insert_firings

    def record(rows: Any, now: Any) -> Any:
        return original(list({row.due_at: row for row in rows}.values()), now)

    patch.setattr(due, "_insert_firings", record)


BREAKS: dict[str, Break] = {
    "clock changes are ignored": clock_changes_are_ignored,
    "every zone is UTC": every_zone_is_utc,
    "gaps are always shifted": partial(_always, gap="shift"),
    "gaps are always skipped": partial(_always, gap="skip"),
    "gaps always end at the next valid time": partial(_always, gap="next_valid"),
    "the first of two times is always taken": partial(_always, overlap_hour="first"),
    "the second of two times is always taken": partial(_always, overlap_hour="second"),
    "both of two times are always taken": partial(_always, overlap_hour="both"),
    "an interval is counted from the claim": an_interval_is_counted_from_the_claim,
    "every second instant is skipped": every_second_instant_is_skipped,
    "every instant fires twice": every_instant_fires_twice,
    "one firing in fifty is lost": one_firing_in_fifty_is_lost,
    "beat claims a minute late": beat_claims_a_minute_late,
    "the window is ignored": the_window_is_ignored,
    "skip means last": skip_means_last,
    "missed instants are not recorded": missed_instants_are_not_recorded,
    "an interval does not wait for its run": an_interval_does_not_wait_for_its_run,
    "the end of a run sets no next fire time": the_end_of_a_run_sets_no_next_fire_time,
    "schedules with the same due time fire once": schedules_with_the_same_due_time_fire_once,
}
