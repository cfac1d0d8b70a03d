"""Checks that must hold after every race; each function returns the problems that it finds."""

from datetime import UTC, datetime, timedelta

from django.db.models import Count, F, Q

from agents_app.maintenance.invariants import violations
from agents_app.models import Agent, Firing, Run, Schedule, WorkItem
from agents_app.models.run import LENT

EPOCH = datetime(2026, 3, 2, 12, 0, tzinfo=UTC)
# An oracle independent of the triggers: the minutes of the hour of each expression.
MINUTES = {
    "* * * * *": set(range(60)),
    "*/7 * * * *": set(range(0, 60, 7)),
    "3,33 * * * *": {3, 33},
}


def doubled_firings() -> list[str]:
    groups = Firing.objects.values("schedule", "due_at").annotate(times=Count("pk"))
    doubles = groups.filter(times__gt=1)
    return [f"{d['schedule']} fired {d['times']} times at {d['due_at']}" for d in doubles]


def missing_firings() -> list[str]:
    """Instants before the next fire time without a firing, and firings at other times."""
    found = []
    for schedule in Schedule.objects.all():
        assert schedule.next_fire_at is not None
        expected = _instants(schedule, schedule.next_fire_at)
        fired = set(schedule.firings.values_list("due_at", flat=True))
        found += [f"{schedule.pk} did not fire at {at}" for at in sorted(expected - fired)]
        found += [f"{schedule.pk} fired at {at}" for at in sorted(fired - expected)]
    return found


def _instants(schedule: Schedule, until: datetime) -> set[datetime]:
    """The first instant is the epoch, independent of the expression."""
    minutes = int((until - EPOCH).total_seconds() // 60)
    moments = [EPOCH + timedelta(minutes=minute) for minute in range(1, minutes)]
    return {EPOCH} | {at for at in moments if at.minute in MINUTES[schedule.expression]}


def miscounted_firings() -> list[str]:
    """Schedules whose counters differ from the number of their firings."""
    counted = Schedule.objects.annotate(rows=Count("firings"))
    wrong = counted.exclude(rows=F("fire_count") + F("missed_count"))
    return [f"{s.pk} counted {s.fire_count} of {s.rows}" for s in wrong]


def miscounted_runs() -> list[str]:
    """Schedules whose counter differs from the number of their runs."""
    runs = Run.objects.filter(schedule__isnull=False).order_by().values_list("schedule")
    counted = dict(runs.annotate(Count("pk")))
    return [
        f"{s.pk} counted {s.run_count} of {counted.get(s.pk, 0)} runs"
        for s in Schedule.objects.all()
        if s.run_count != counted.get(s.pk, 0)
    ]


def undecided_firings() -> list[str]:
    return [f"firing {pk}" for pk in Firing.objects.filter(outcome="").values_list("pk", flat=True)]


def wrong_firings() -> list[str]:
    return doubled_firings() + missing_firings() + miscounted_firings() + miscounted_runs()


def too_many_runs() -> list[str]:
    """Agents with more unfinished runs than their scale, or two runs in one slot."""
    unfinished = Run.objects.filter(slot__lt=LENT)
    found = []
    for agent in Agent.objects.all():
        slots = list(unfinished.filter(agent=agent).values_list("slot", flat=True))
        if len(slots) > agent.scale:
            found.append(f"{agent} has {len(slots)} runs at scale {agent.scale}")
        if len(slots) != len(set(slots)):
            found.append(f"{agent} has runs in slots {slots}")
    return found


def idle_slots() -> list[str]:
    """Agents with a free slot and queued work."""
    found = []
    for agent in Agent.objects.filter(work_items__state="queued").distinct():
        taken = agent.runs.filter(slot__isnull=False).count()
        if taken < agent.scale:
            found.append(f"{agent} uses {taken} of {agent.scale} slots")
    return found


def work_done_twice() -> list[str]:
    """Work items with more than one run, where no run was lost, retried or rerun."""
    items = WorkItem.objects.annotate(times=Count("runs")).filter(times__gt=1)
    return [f"{item} ran {item.times} times" for item in items]


def runs_that_ended_twice() -> list[str]:
    """Ended runs without exactly one event of their end."""
    ends = [f"run.{state}" for state in Run.State.values if state not in ("pending", "running")]
    ended = Run.objects.filter(slot__isnull=True)
    counted = ended.annotate(times=Count("events", filter=Q(events__name__in=ends)))
    return [f"{run} ended {run.times} times" for run in counted.exclude(times=1)]


def broken_invariants() -> list[str]:
    """The violated invariants of `doctor --invariants`."""
    found = violations(datetime.now(UTC))
    # These compare with the present time, but races use a clock of their own.
    timed = {
        "due_schedule_that_no_beat_claims",
        "undecided_firing",
        "work_queued_despite_a_free_slot",
    }
    return [f"{v.name}: {v.examples}" for v in found if v.name not in timed]
