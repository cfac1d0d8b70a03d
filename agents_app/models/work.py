"""Work items: the durable queue of each agent."""

from typing import TYPE_CHECKING, TypeVar

from django.db import models
from django.db.models import Q

from agents_app.models.agent import Agent
from agents_app.models.rule import RuleState
from agents_app.models.schedule import Firing, Schedule
from agents_app.models.tenant import owner
from agents_app.models.webhook import Delivery

if TYPE_CHECKING:
    from agents_app.models.run import Run

M = TypeVar("M", bound=models.Model)


def optional_reference(
    to: type[M] | str, related_name: str = "+"
) -> "models.ForeignKey[M | None, M | None]":
    """A column of a busy table that becomes NULL when the other row is deleted.

    Without a constraint in the database: an insert would lock the other row, and would fail if
    that row is deleted at the same time.
    """
    return models.ForeignKey(
        to,
        on_delete=models.SET_NULL,
        null=True,
        blank=True,
        related_name=related_name,
        db_index=False,
        db_constraint=False,
    )


class Trigger(models.TextChoices):
    SCHEDULE = "schedule"
    WEBHOOK = "webhook"
    CALL = "call"
    MESSAGE = "message"
    RULE = "rule"
    MANUAL = "manual"


class WorkItem(models.Model):
    """A task for an agent; it has at most one unfinished run at a time.

    The row that a work item was created for is named by `firing`, `delivery`, `rule`, `rerun_of`,
    `parent_run` or by the `work_item` of a message; `requested_by` is a text for people.
    """

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
    delivery = optional_reference(Delivery, "work_items")
    rule = optional_reference(RuleState, "work_items")
    rerun_of: "models.ForeignKey[Run | None, Run | None]" = optional_reference("agents_app.Run")
    prompt = models.TextField(blank=True)
    context = models.TextField(blank=True)
    requested_by = models.CharField(max_length=200, blank=True)
    # A repeated request with the same key creates no second work item.
    idempotency_key = models.CharField(max_length=200, null=True, blank=True)  # noqa: DJ001
    # Of a call: the calling run and the number of callers; copied to the run.
    parent_run: "models.ForeignKey[Run | None, Run | None]" = optional_reference("agents_app.Run")
    depth = models.PositiveIntegerField(default=0, db_default=0)
    attempts = models.PositiveIntegerField(default=0)
    trace_id = models.CharField(max_length=32, blank=True)
    created_at = models.DateTimeField()
    available_at = models.DateTimeField()
    finished_at = models.DateTimeField(null=True, blank=True)

    class Meta:
        db_table = "drover_work_item"
        verbose_name = "work item"
        verbose_name_plural = "queue"
        constraints = [
            models.UniqueConstraint(
                fields=["tenant", "idempotency_key"],
                name="work_item_idempotency_key_once",
                condition=Q(idempotency_key__isnull=False),
            )
        ]
        indexes = [
            # Before the next index: of two that fit, SQLite uses the one that was created last.
            models.Index(fields=["agent", "id"], name="work_item_of_agent"),
            models.Index(
                fields=["agent", "id"], name="work_item_next", condition=Q(state="queued")
            ),
            models.Index(
                fields=["tenant", "finished_at"],
                name="work_item_finished",
                condition=Q(finished_at__isnull=False),
            ),
            models.Index(
                fields=["schedule"],
                name="work_item_live_of_schedule",
                condition=Q(state__in=["queued", "admitted"]),
            ),
            # For the page of a delivery, and for the deletion of each of these rows.
            *(
                models.Index(
                    fields=[name],
                    name=f"work_item_of_{name}",
                    condition=Q(**{f"{name}__isnull": False}),
                )
                for name in ("delivery", "rule", "rerun_of", "parent_run")
            ),
        ]

    def __str__(self) -> str:
        return f"work item {self.pk}"
