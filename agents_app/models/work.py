"""What agents must do: the durable queue."""

from django.db import models
from django.db.models import Q

from agents_app.models.agent import Agent
from agents_app.models.schedule import Firing, Schedule
from agents_app.models.tenant import owner


class Trigger(models.TextChoices):
    SCHEDULE = "schedule"
    WEBHOOK = "webhook"
    CALL = "call"
    MESSAGE = "message"
    RULE = "rule"
    MANUAL = "manual"


class WorkItem(models.Model):
    """Something an agent must do; it has at most one unfinished run at a time."""

    class State(models.TextChoices):
        QUEUED = "queued"
        ADMITTED = "admitted"
        DONE = "done"
        FAILED = "failed"
        DROPPED = "dropped"
        CLEARED = "cleared"

    tenant = owner()
    agent = models.ForeignKey(
        Agent, on_delete=models.CASCADE, related_name="work_items", db_index=False
    )
    state = models.CharField(max_length=8, choices=State.choices, default=State.QUEUED)
    reason = models.CharField(max_length=200, blank=True)
    trigger = models.CharField(max_length=8, choices=Trigger.choices)
    schedule = models.ForeignKey(
        Schedule, on_delete=models.SET_NULL, null=True, blank=True, related_name="+", db_index=False
    )
    firing = models.OneToOneField(
        Firing, on_delete=models.SET_NULL, null=True, blank=True, related_name="work_item"
    )
    prompt = models.TextField(blank=True)
    context = models.TextField(blank=True)
    requested_by = models.CharField(max_length=200, blank=True)
    # The same key makes no second work item, whoever repeats the request.
    idempotency_key = models.CharField(max_length=200, null=True, blank=True)  # noqa: DJ001
    # Of a call: who asked, and how many calls deep; a run takes both over.
    parent_run = models.ForeignKey(
        "agents_app.Run",
        on_delete=models.SET_NULL,
        null=True,
        blank=True,
        related_name="+",
        db_index=False,
        db_constraint=False,
    )
    depth = models.PositiveIntegerField(default=0, db_default=0)
    attempts = models.PositiveIntegerField(default=0)
    trace_id = models.CharField(max_length=32, blank=True)
    created_at = models.DateTimeField()
    available_at = models.DateTimeField()
    finished_at = models.DateTimeField(null=True, blank=True)

    class Meta:
        db_table = "drover_work_item"
        constraints = [
            models.UniqueConstraint(
                fields=["tenant", "idempotency_key"],
                name="work_item_idempotency_key_once",
                condition=Q(idempotency_key__isnull=False),
            )
        ]
        indexes = [
            # Before the next one: of two that fit, SQLite takes the one that was made last.
            models.Index(fields=["agent", "id"], name="work_item_of_agent"),
            models.Index(
                fields=["agent", "id"], name="work_item_next", condition=Q(state="queued")
            ),
            models.Index(
                fields=["schedule"],
                name="work_item_live_of_schedule",
                condition=Q(state__in=["queued", "admitted"]),
            ),
        ]

    def __str__(self) -> str:
        return f"work {self.pk}"
