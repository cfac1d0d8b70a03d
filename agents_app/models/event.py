"""Events in their order, each written in the transaction of the change it records."""

from django.db import models
from django.db.models import Q

from agents_app.models.agent import Agent
from agents_app.models.machine import Worker
from agents_app.models.run import Run
from agents_app.models.tenant import owner


class RunEvent(models.Model):
    """A change of a run, or an action of a person (then without a run)."""

    tenant = owner()
    agent = models.ForeignKey(
        Agent,
        on_delete=models.CASCADE,
        null=True,
        related_name="+",
        db_index=False,
        db_constraint=False,
    )
    run = models.ForeignKey(
        Run,
        on_delete=models.CASCADE,
        null=True,
        related_name="events",
        db_index=False,
        db_constraint=False,
    )
    name = models.CharField(max_length=40)
    at = models.DateTimeField()
    detail = models.CharField(max_length=500, blank=True)
    # The person, token, rule or run that acted; empty: the event happened by itself.
    actor = models.CharField(max_length=200, blank=True, db_default="", editable=False)

    class Meta:
        db_table = "drover_run_event"
        verbose_name = "event"
        indexes = [
            models.Index(fields=["run", "id"], name="run_event_of_run"),
            models.Index(fields=["tenant", "id"], name="run_event_of_tenant"),
            models.Index(
                fields=["tenant", "at", "id"], name="run_event_of_audit", condition=~Q(actor="")
            ),
        ]

    def __str__(self) -> str:
        return self.name


class Heartbeat(models.Model):
    """The state and the last lines of output of a running run."""

    class State(models.TextChoices):
        ALIVE = "alive"
        IDLE = "idle"
        BUSY = "busy"
        DEAD = "dead"

    tenant = owner()
    worker = models.ForeignKey(Worker, on_delete=models.CASCADE, related_name="heartbeats")
    run = models.ForeignKey(Run, on_delete=models.CASCADE, related_name="heartbeats")
    state = models.CharField(max_length=5, choices=State.choices)
    status_text = models.CharField(max_length=500, blank=True)
    last_output = models.TextField(blank=True)
    at = models.DateTimeField()

    class Meta:
        db_table = "drover_heartbeat"
        indexes = [
            models.Index(fields=["at"], name="heartbeat_expired"),
            models.Index(
                fields=["run", "id"], name="heartbeat_dead_of_run", condition=Q(state="dead")
            ),
        ]

    def __str__(self) -> str:
        return f"run {self.run_id} {self.state}"
