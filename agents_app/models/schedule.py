"""When agents run by time, and the ledger of every instant that came due."""

from django.db import models
from django.db.models import Q

from agents_app.models.agent import Agent
from agents_app.models.tenant import Tenant, owner


class Schedule(models.Model):
    """A row that fires an agent by time."""

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

    class Source(models.TextChoices):
        FILE = "file", "SKILL.md"
        PERSON = "person"

    tenant = models.ForeignKey(Tenant, on_delete=models.CASCADE, related_name="schedules")
    agent = models.ForeignKey(Agent, on_delete=models.CASCADE, related_name="schedules")
    name = models.CharField(max_length=100)
    source = models.CharField(max_length=8, choices=Source.choices, default=Source.PERSON)
    expression = models.CharField(
        max_length=200, help_text="A cron expression, a macro such as @daily, or a duration: 15m"
    )
    # Set for intervals, null for cron: an interval counts from the last completion.
    interval_seconds = models.FloatField(null=True, blank=True, editable=False)
    timezone = models.CharField(max_length=64, default="UTC")
    prompt = models.TextField(blank=True)
    overlap = models.CharField(max_length=12, choices=Overlap.choices, default=Overlap.SKIP)
    catch_up = models.CharField(max_length=8, choices=CatchUp.choices, default=CatchUp.LAST)
    catch_up_window_seconds = models.FloatField(default=3600)

    state = models.CharField(max_length=10, choices=State.choices, default=State.ACTIVE)
    pause_note = models.CharField(max_length=500, blank=True)
    next_fire_at = models.DateTimeField(null=True, blank=True)
    last_fire_at = models.DateTimeField(null=True, blank=True)
    last_completed_at = models.DateTimeField(null=True, blank=True)
    fire_count = models.PositiveIntegerField(default=0)
    missed_count = models.PositiveIntegerField(default=0)
    created_at = models.DateTimeField(auto_now_add=True)
    updated_at = models.DateTimeField(auto_now=True)

    class Meta:
        db_table = "drover_schedule"
        constraints = [
            models.UniqueConstraint(fields=["agent", "name"], name="schedule_name_once_per_agent")
        ]
        indexes = [
            models.Index(fields=["next_fire_at"], name="schedule_due", condition=Q(state="active")),
        ]

    def __str__(self) -> str:
        return f"{self.agent.name}/{self.name}"


class Firing(models.Model):
    """One due instant of one schedule; it always ends in an outcome."""

    class Outcome(models.TextChoices):
        UNDECIDED = "", "undecided"
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

    tenant = owner()
    schedule = models.ForeignKey(
        Schedule, on_delete=models.CASCADE, related_name="firings", db_index=False
    )
    due_at = models.DateTimeField()
    recorded_at = models.DateTimeField()
    outcome = models.CharField(
        max_length=8, choices=Outcome.choices, default=Outcome.UNDECIDED, blank=True
    )
    reason = models.CharField(max_length=20, choices=Reason.choices, blank=True)

    class Meta:
        db_table = "drover_firing"
        constraints = [
            # The guard of promise 1: a due instant fires once, whoever claims it, however often.
            models.UniqueConstraint(
                fields=["schedule", "due_at"], name="firing_once_per_due_instant"
            )
        ]
        indexes = [
            models.Index(fields=["id"], name="firing_undecided", condition=Q(outcome="")),
            models.Index(fields=["recorded_at"], name="firing_expired"),
        ]

    def __str__(self) -> str:
        return f"{self.schedule_id} at {self.due_at:%Y-%m-%d %H:%M:%S}"

    @property
    def late_seconds(self) -> float:
        return (self.recorded_at - self.due_at).total_seconds()
