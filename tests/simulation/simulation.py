"""Simulates time for many schedules and compares the recorded firings with the expected ones."""

import random
from collections import defaultdict
from collections.abc import Iterator
from datetime import datetime, timedelta

from django.db.models import Min

from agents_app.database.transactions import in_transaction
from agents_app.models import Agent, Firing, Schedule
from agents_app.schedules import due, edit
from agents_app.schedules.edit import Draft
from tests.simulation.ledger import Entry, Ledger, expected, of_claims
from tests.simulation.meanings import AfterEachRun
from tests.simulation.mixture import Case
from tests.simulation.runs import Runs
from tests.simulation.wall_clock import MINUTE, changes


class Simulation:
    def __init__(self, agent: Agent, cases: list[Case], start: datetime, seed: int) -> None:
        self.start = self.now = start
        self.chance = random.Random(seed)
        self.moments: list[datetime] = []
        self.cases = dict(zip(_create(agent, cases, start), cases, strict=True))
        takes = {
            pk: case.meaning.takes
            for pk, case in self.cases.items()
            if isinstance(case.meaning, AfterEachRun)
        }
        self.runs = Runs(agent.pk, takes)

    def run(self, until: datetime) -> None:
        """Run in large steps, but during clock changes in the steps of a beat."""
        hours = self._hours_of_change(until)
        while self.now < until:
            exact = self.now.replace(minute=0, second=0, microsecond=0) in hours
            step = self._until_next_due() if exact else self._random_step()
            self.now = min(until, self.now + step)
            self._claim()

    def _claim(self) -> None:
        self.moments.append(self.now)
        self.runs.end(self.now)
        due.claim_due_schedules(self.now)
        self.runs.begin(self.now)

    # --- steps of time --------------------------------------------------------------------------

    def _hours_of_change(self, until: datetime) -> set[datetime]:
        """From two hours before a change in any zone to two hours after it."""
        zones = {case.place.zone for case in self.cases.values()}
        moments = {at for zone in zones for at in changes(zone, self.start, until)}
        around = [timedelta(hours=hours) for hours in range(-2, 3)]
        return {at.replace(minute=0, second=0) + hours for at in moments for hours in around}

    def _until_next_due(self) -> timedelta:
        active = Schedule.objects.filter(state="active", next_fire_at__isnull=False)
        armed = active.aggregate(at=Min("next_fire_at"))["at"]
        late = timedelta(seconds=self.chance.choice((0, 0.02, 1.5)), microseconds=1)
        # An unclaimed due instant must not stop the clock: the comparison finds it.
        return (armed - self.now if armed > self.now else MINUTE) + late

    def _random_step(self) -> timedelta:
        drawn = self.chance.random()
        if drawn < 0.1:
            return self._until_next_due()
        longest = 3600 if drawn < 0.45 else 5 * 3600 if drawn < 0.9 else 86_400
        return timedelta(seconds=self.chance.uniform(60, longest))

    # --- comparison -----------------------------------------------------------------------------

    def differences(self) -> list[str]:
        """Differences in firings between expectation and record, and in counters of schedules."""
        rows, found = Schedule.objects.in_bulk(self.cases), _read()
        return [
            f"{case.text!r} in {case.place}, catch up {case.catch_up}: {wrong}"
            for pk, case in self.cases.items()
            for wrong in _compare(self._expected(case), found[pk], rows[pk])
        ]

    def _expected(self, case: Case) -> Ledger:
        if isinstance(case.meaning, AfterEachRun):
            return of_claims(case.meaning.claims(self.start, self.moments))
        instants = case.meaning.instants(self.start, self.now)
        window = timedelta(seconds=case.window_seconds)
        return expected(instants, self.moments, case.catch_up, window)


def _create(agent: Agent, cases: list[Case], now: datetime) -> list[int]:
    rows = [
        edit.draft_schedule(
            agent,
            Draft(
                text=case.text,
                name=f"{number}",
                timezone=case.timezone,
                gap=case.place.gap,
                overlap_hour=case.place.overlap_hour,
                anchor=case.anchor,
                catch_up=case.catch_up,
                catch_up_window_seconds=case.window_seconds,
            ),
            now,
        )
        for number, case in enumerate(cases)
    ]
    return [row.pk for row in in_transaction(lambda: Schedule.objects.bulk_create(rows))]


def _read() -> dict[int, list[Entry]]:
    found: dict[int, list[Entry]] = defaultdict(list)
    rows = Firing.objects.values_list("schedule_id", "due_at", "recorded_at", "outcome", "reason")
    for schedule_id, due_at, recorded_at, outcome, reason in rows.iterator():
        assert (outcome, reason) in (("", ""), ("skipped", "missed"))
        found[schedule_id].append((due_at, recorded_at, not outcome))
    return found


def _compare(ledger: Ledger, found: list[Entry], schedule: Schedule) -> Iterator[str]:
    missing = sorted(set(ledger.entries) - set(found))
    too_many = sorted(set(found) - set(ledger.entries))
    if missing:
        yield f"{len(missing)} are missing, the first {missing[0]}"
    if too_many:
        yield f"{len(too_many)} are too many, the first {too_many[0]}"
    if len(found) != len(set(found)):
        yield "some are recorded twice"
    counts = schedule.fire_count, schedule.missed_count, schedule.late_count
    if counts != ledger.counts:
        yield f"the counters are {counts} and not {ledger.counts}"
