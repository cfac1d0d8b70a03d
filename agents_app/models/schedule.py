"""Schedules, and a firing for each of their due instants."""

from django.db import models
from django.db.models import Q

from agents_app.models.agent import Agent
from agents_app.models.tenant import Tenant, owner


class Schedule(models.Model):
    """Starts an agent at times."""

    class State(models.TextChoices):
        ACTIVE = "active"
        PAUSED = "paused"
        COMPLETED = "completed"
        FAILED = "failed"
        CANCELED = "canceled"

    class Overlap(models.TextChoices):
        SKIP = "skip"
        QUEUE_ONE = "queue_one"
        QUEUE = "queue"
        CANCEL_OTHER = "cancel_other"

    class CatchUp(models.TextChoices):
        SKIP = "skip"
        LAST = "last"
        ALL = "all"

    class Anchor(models.TextChoices):
        """The start of an interval."""

        COMPLETION = "completion", "End of the last run"
        START = "start", "Last fire"

    class Gap(models.TextChoices):
        """A wall-clock time that a clock change leaves out."""

        SHIFT = "shift", "Shift by the change"
        NEXT_VALID = "next_valid", "First valid time after the change"
        SKIP = "skip"

    class OverlapHour(models.TextChoices):
        """A wall-clock time that a clock change brings twice."""

        FIRST = "first", "First occurrence"
        SECOND = "second", "Second occurrence"
        BOTH = "both"

    class Source(models.TextChoices):
        FILE = "file", "SKILL.md"
        PERSON = "person"

    tenant = models.ForeignKey(Tenant, on_delete=models.CASCADE, related_name="schedules")
    agent = models.ForeignKey(Agent, on_delete=models.CASCADE, related_name="schedules")
    name = models.CharField(max_length=100)
    source = models.CharField(max_length=8, choices=Source.choices, default=Source.PERSON)
    # A repeated request with the same key creates no second schedule.
    idempotency_key = models.CharField(  # noqa: DJ001
        max_length=200, null=True, blank=True, editable=False
    )
    text = models.CharField(
        "when",
        max_length=200,
        blank=True,
        help_text='"every monday at 09:00", "in 30 minutes", "0 9 * * 1-5", "@daily" or "15m"',
    )
    # The meaning of `text` in the syntax of parse_trigger, independent of the clock.
    expression = models.CharField(max_length=200, editable=False)
    one_shot = models.BooleanField(default=False, editable=False)
    # Only for intervals that are counted from the last completion.
    interval_seconds = models.FloatField(null=True, blank=True, editable=False)
    timezone = models.CharField(max_length=64, default="UTC")
    anchor = models.CharField(
        max_length=10,
        choices=Anchor.choices,
        blank=True,
        help_text="Only for intervals; empty: 15m counts from the end of a run, "
        '"every 15 minutes" from the last fire',
    )
    gap = models.CharField(max_length=10, choices=Gap.choices, default=Gap.SHIFT)
    overlap_hour = models.CharField(
        max_length=6, choices=OverlapHour.choices, default=OverlapHour.FIRST
    )
    prompt = models.TextField(blank=True)
    # Polled before a firing starts a run; NULL: the work source of the agent, if it has one.
    work_source = models.JSONField(null=True, blank=True)
    overlap = models.CharField(max_length=12, choices=Overlap.choices, default=Overlap.SKIP)
    catch_up = models.CharField(max_length=8, choices=CatchUp.choices, default=CatchUp.LAST)
    catch_up_window_seconds = models.FloatField(default=3600)
    jitter_percent = models.FloatField(default=0, help_text="Of an interval, 0 to 10")
    jitter_seconds = models.FloatField(default=0)
    pause_after_failures = models.PositiveIntegerField(
        default=0, help_text="Paused after so many failures in a row; 0: never"
    )

    state = models.CharField(max_length=10, choices=State.choices, default=State.ACTIVE)
    pause_note = models.CharField(max_length=500, blank=True)
    pause_until = models.DateTimeField(null=True, blank=True)
    next_fire_at = models.DateTimeField(null=True, blank=True)
    last_fire_at = models.DateTimeField(null=True, blank=True)
    last_completed_at = models.DateTimeField(null=True, blank=True)
    fire_count = models.PositiveIntegerField(default=0)
    # Runs, with retries and reruns; skipped firings are counted in skipped_count.
    run_count = models.PositiveIntegerField(default=0, db_default=0)
    missed_count = models.PositiveIntegerField(default=0)
    skipped_count = models.PositiveIntegerField(default=0)
    late_count = models.PositiveIntegerField(default=0)
    # Since the last success.
    failure_count = models.PositiveIntegerField(default=0)
    # Of the last work that failed; empty after a success.
    last_error = models.CharField(max_length=500, blank=True, db_default="")
    created_at = models.DateTimeField(auto_now_add=True)
    # Moves with every change of the row, also by a firing or a run.
    updated_at = models.DateTimeField(auto_now=True)

    class Meta:
        db_table = "drover_schedule"
        constraints = [
            models.UniqueConstraint(fields=["agent", "name"], name="schedule_name_once_per_agent"),
            models.UniqueConstraint(
                fields=["tenant", "idempotency_key"],
                name="schedule_idempotency_key_once",
                condition=Q(idempotency_key__isnull=False),
            ),
        ]
        indexes = [
            models.Index(fields=["next_fire_at"], name="schedule_due", condition=Q(state="active")),
            models.Index(
                fields=["pause_until"],
                name="schedule_paused_until",
                condition=Q(state="paused", pause_until__isnull=False),
            ),
        ]

    def __str__(self) -> str:
        return f"{self.agent.name}/{self.name}"

    @property
    def shown_state(self) -> str:
        """The state for people: an active schedule of a disabled agent is shown as disabled."""
        disabled = self.state == self.State.ACTIVE and not self.agent.enabled
        return "disabled" if disabled else str(self.state)


class Firing(models.Model):
    """One due instant of one schedule; each gets an outcome."""

    class Outcome(models.TextChoices):
        UNDECIDED = "", "undecided"
        # Its work source is being asked for an item.
        POLLING = "polling"
        STARTED = "started"
        QUEUED = "queued"
        SKIPPED = "skipped"
        FAILED = "failed"

    class Reason(models.TextChoices):
        DISABLED = "disabled"
        ALREADY_RUNNING = "already_running"
        AT_CAPACITY = "at_capacity"
        PAUSED = "paused"
        BUDGET = "budget"
        TENANT_DISABLED = "tenant_disabled"
        MISSED = "missed"
        STOPPING = "stopping"
        NO_WORK = "no_work"
        SOURCE_FAILED = "source_failed"

    tenant = owner()
    schedule = models.ForeignKey(
        Schedule, on_delete=models.CASCADE, related_name="firings", db_index=False
    )
    due_at = models.DateTimeField()
    recorded_at = models.DateTimeField()
    # The time of the decision: the due time plus jitter, or later for late firings.
    decide_at = models.DateTimeField()
    outcome = models.CharField(
        max_length=8, choices=Outcome.choices, default=Outcome.UNDECIDED, blank=True
    )
    reason = models.CharField(max_length=20, choices=Reason.choices, blank=True)

    class Meta:
        db_table = "drover_firing"
        constraints = [
            # Guarantees promise 1: a due instant fires once, however many beats claim it.
            models.UniqueConstraint(
                fields=["schedule", "due_at"], name="firing_once_per_due_instant"
            )
        ]
        indexes = [
            models.Index(
                fields=["decide_at", "id"], name="firing_undecided", condition=Q(outcome="")
            ),
            models.Index(fields=["recorded_at"], name="firing_expired"),
            models.Index(fields=["id"], name="firing_polling", condition=Q(outcome="polling")),
        ]

    def __str__(self) -> str:
        return f"firing at {self.due_at:%Y-%m-%d %H:%M:%S}"

    @property
    def late_seconds(self) -> float:
        return (self.recorded_at - self.due_at).total_seconds()
