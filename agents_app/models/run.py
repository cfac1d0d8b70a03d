"""Runs of work items and their output."""

import json
from typing import Any

from django.db import models
from django.db.models import Q

from agents_app.models.agent import Agent
from agents_app.models.machine import Worker
from agents_app.models.schedule import Schedule
from agents_app.models.tenant import owner
from agents_app.models.work import Trigger, WorkItem, optional_reference

# A run that lends its slot to a called run gets a slot number from here on, which is above every
# scale and does not count.
LENT = 1_000_000_000


class Run(models.Model):
    """One attempt: a retry is a new row, so that a late report finds its row ended."""

    class State(models.TextChoices):
        PENDING = "pending"
        RUNNING = "running"
        SUCCEEDED = "succeeded"
        FAILED = "failed"
        TIMED_OUT = "timed_out"
        STOPPED = "stopped"
        LOST = "lost"
        DEAD = "dead"

    # Failures; a stopped run is none.
    ENDED_BADLY = (State.FAILED, State.TIMED_OUT, State.LOST, State.DEAD)

    tenant = owner()
    agent = models.ForeignKey(Agent, on_delete=models.CASCADE, related_name="runs", db_index=False)
    work_item = models.ForeignKey(WorkItem, on_delete=models.CASCADE, related_name="runs")
    schedule = models.ForeignKey(
        Schedule, on_delete=models.SET_NULL, null=True, blank=True, related_name="+", db_index=False
    )
    state = models.CharField(max_length=9, choices=State.choices, default=State.PENDING)
    trigger = models.CharField(max_length=8, choices=Trigger.choices)
    requested_by = models.CharField(max_length=200, blank=True)

    # Held while unfinished, null afterwards: the unique indexes below limit concurrency.
    slot = models.PositiveIntegerField(null=True, blank=True)
    project_slot = models.PositiveIntegerField(null=True, blank=True)

    attempt = models.PositiveIntegerField(default=1)
    rerun = models.PositiveIntegerField(default=0)
    depth = models.PositiveIntegerField(default=0)
    parent_run = models.ForeignKey(
        "self", on_delete=models.SET_NULL, null=True, blank=True, related_name="children"
    )
    worker = optional_reference(Worker, "runs")
    pid = models.IntegerField(null=True, blank=True)
    container = models.CharField(max_length=80, blank=True, db_default="")
    # How its program was confined (agents_app.runners.promises); empty: not known, or a container.
    sandbox = models.CharField(max_length=100, blank=True, db_default="", editable=False)
    # Of the secret that authenticates the run; valid while the run is unfinished.
    token_sha256 = models.CharField(max_length=64, db_default="", editable=False)
    created_at = models.DateTimeField()
    hinted_at = models.DateTimeField(null=True, blank=True)
    started_at = models.DateTimeField(null=True, blank=True)
    deadline_at = models.DateTimeField(null=True, blank=True)
    stop_requested_at = models.DateTimeField(null=True, blank=True)
    finished_at = models.DateTimeField(null=True, blank=True)
    exit_code = models.IntegerField(null=True, blank=True)
    error = models.TextField(blank=True)
    # The last signal of the run; null: no signal, and the fields below are unset.
    signaled_at = models.DateTimeField(null=True, blank=True)
    status_text = models.CharField(max_length=500, blank=True)
    progress_percent = models.FloatField(null=True, blank=True)
    rerun_requested = models.BooleanField(db_default=False)
    exit_signal = models.SmallIntegerField(null=True, blank=True)
    return_value = models.TextField(blank=True, db_default="")
    # A JSON object that the run has left for its hooks; empty: none. A text, because PostgreSQL
    # cannot store every JSON text as a value.
    metadata_json = models.TextField(blank=True, db_default="", editable=False)
    # The run waits for a call and may lend its slot to the called run.
    waiting_since = models.DateTimeField(null=True, blank=True)
    # The lenders of its slot and of its project slot, which may be two runs.
    borrowed_from: "models.ForeignKey[Run | None, Run | None]" = optional_reference("self")
    project_borrowed_from: "models.ForeignKey[Run | None, Run | None]" = optional_reference("self")
    result_summary = models.TextField(blank=True)
    tokens_in = models.PositiveBigIntegerField(default=0)
    tokens_out = models.PositiveBigIntegerField(default=0)
    tokens_cache = models.PositiveBigIntegerField(default=0)
    cost_usd = models.DecimalField(max_digits=12, decimal_places=6, default=0)
    trace_id = models.CharField(max_length=32, blank=True)
    # Only of a run that prints more than is stored; of others the stored output has the time.
    printed_at = models.DateTimeField(null=True, blank=True, editable=False)
    output_bytes = models.PositiveBigIntegerField(default=0)
    output_cut_bytes = models.PositiveBigIntegerField(default=0)

    class Meta:
        db_table = "drover_run"
        constraints = [
            # Guarantees `scale`: two admissions never take one slot.
            models.UniqueConstraint(
                fields=["agent", "slot"], name="run_slot_once", condition=Q(slot__isnull=False)
            ),
            models.UniqueConstraint(
                fields=["tenant", "project_slot"],
                name="run_project_slot_once",
                condition=Q(project_slot__isnull=False),
            ),
            # Guarantees promise 3: a work item never has two unfinished runs.
            models.UniqueConstraint(
                fields=["work_item"],
                name="run_live_once_per_work_item",
                condition=Q(slot__isnull=False),
            ),
            models.CheckConstraint(
                name="run_holds_a_slot_while_unfinished",
                condition=Q(state__in=["pending", "running"], slot__isnull=False)
                | Q(slot__isnull=True, project_slot__isnull=True)
                & ~Q(state__in=["pending", "running"]),
            ),
        ]
        indexes = [
            models.Index(
                fields=["finished_at"],
                name="run_failed_lately",
                condition=Q(state__in=["failed", "timed_out", "lost", "dead"]),
            ),
            models.Index(
                fields=["finished_at"], name="run_ended", condition=Q(finished_at__isnull=False)
            ),
            models.Index(fields=["agent", "id"], name="run_of_agent"),
            models.Index(fields=["tenant", "id"], name="run_of_tenant"),
            models.Index(
                fields=["schedule", "id"],
                name="run_of_schedule",
                condition=Q(schedule__isnull=False),
            ),
            models.Index(
                fields=["state", "worker"], name="run_unfinished", condition=Q(slot__isnull=False)
            ),
        ]

    def __str__(self) -> str:
        return f"run {self.pk}"

    @property
    def metadata(self) -> dict[str, Any]:
        """What the run has left for its hooks."""
        stored: dict[str, Any] = json.loads(self.metadata_json) if self.metadata_json else {}
        return stored

    @property
    def trigger_detail(self) -> str:
        """The trigger of the run as a text for people."""
        if self.rerun:
            return f"rerun {self.rerun}/{self.agent.max_reruns}"
        return str(self.trigger)


class RunOutput(models.Model):
    """A piece of the output of a run, as bytes, in the order it was read."""

    class Stream(models.IntegerChoices):
        MARKER = 0
        STDOUT = 1
        STDERR = 2

    tenant = owner()
    run = models.ForeignKey(Run, on_delete=models.CASCADE, related_name="output", db_index=False)
    seq = models.PositiveIntegerField()
    stream = models.PositiveSmallIntegerField(choices=Stream.choices)
    at = models.DateTimeField()
    data = models.BinaryField()
    # The number of lines that have ended before this row, and what the streams have begun before
    # it (agents_app.output.numbering): a reader can begin at any row.
    first_line = models.PositiveIntegerField(db_default=0)
    carried = models.TextField(db_default="", blank=True)

    class Meta:
        db_table = "drover_run_output"
        constraints = [models.UniqueConstraint(fields=["run", "seq"], name="run_output_in_order")]

    def __str__(self) -> str:
        return f"run {self.run_id} output {self.seq}"
