"""What must hold after any race, each check as a function that returns what is wrong."""

from datetime import UTC, datetime, timedelta

from django.db.models import Count, F, Q

from agents_app.maintenance.invariants import violations
from agents_app.models import Agent, Firing, Run, Schedule, WorkItem
from agents_app.models.run import LENT

EPOCH = datetime(2026, 3, 2, 12, 0, tzinfo=UTC)
# An oracle that shares nothing with the trigger mathematics: which minutes of the hour.
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
    """Every instant before the time a schedule is armed for has its firing."""
    found = []
    for schedule in Schedule.objects.all():
        assert schedule.next_fire_at is not None
        expected = _instants(schedule, schedule.next_fire_at)
        fired = set(schedule.firings.values_list("due_at", flat=True))
        found += [f"{schedule.pk} did not fire at {at}" for at in sorted(expected - fired)]
        found += [f"{schedule.pk} fired at {at}" for at in sorted(fired - expected)]
    return found


def _instants(schedule: Schedule, until: datetime) -> set[datetime]:
    """The first was set by hand to the epoch, whatever the expression says."""
    minutes = int((until - EPOCH).total_seconds() // 60)
    moments = [EPOCH + timedelta(minutes=minute) for minute in range(1, minutes)]
    return {EPOCH} | {at for at in moments if at.minute in MINUTES[schedule.expression]}


def miscounted_firings() -> list[str]:
    """Each schedule has counted exactly the firings it has."""
    counted = Schedule.objects.annotate(rows=Count("firings"))
    wrong = counted.exclude(rows=F("fire_count") + F("missed_count"))
    return [f"{s.pk} counted {s.fire_count} of {s.rows}" for s in wrong]


def undecided_firings() -> list[str]:
    return [f"firing {pk}" for pk in Firing.objects.filter(outcome="").values_list("pk", flat=True)]


def wrong_firings() -> list[str]:
    return doubled_firings() + missing_firings() + miscounted_firings()


def too_many_runs() -> list[str]:
    """Unfinished runs above an agent's scale, and slots that two of them hold."""
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
    """Free slots of agents whose work waits."""
    found = []
    for agent in Agent.objects.filter(work_items__state="queued").distinct():
        taken = agent.runs.filter(slot__isnull=False).count()
        if taken < agent.scale:
            found.append(f"{agent} uses {taken} of {agent.scale} slots")
    return found


def work_done_twice() -> list[str]:
    """Work items with more than one run; nothing was lost, retried or run again here."""
    items = WorkItem.objects.annotate(times=Count("runs")).filter(times__gt=1)
    return [f"{item} ran {item.times} times" for item in items]


def runs_that_ended_twice() -> list[str]:
    """Runs of whose end the journal tells more than once, or not at all."""
    ends = [f"run.{state}" for state in Run.State.values if state not in ("pending", "running")]
    ended = Run.objects.filter(slot__isnull=True)
    told = ended.annotate(times=Count("events", filter=Q(events__name__in=ends)))
    return [f"{run} ended {run.times} times" for run in told.exclude(times=1)]


def broken_invariants() -> list[str]:
    """Those of the product itself, which the doctor looks at as well."""
    found = violations(datetime.now(UTC))
    # The clock of a race is another than the one they are told.
    timed = {
        "due_schedule_that_no_beat_claims",
        "undecided_firing",
        "work_that_waits_beside_a_free_slot",
    }
    return [f"{v.name}: {v.examples}" for v in found if v.name not in timed]
