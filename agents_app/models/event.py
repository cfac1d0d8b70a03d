"""What happened, in order: written in the same transaction as the change it tells of."""

from django.db import models
from django.db.models import Q

from agents_app.models.agent import Agent
from agents_app.models.machine import Worker
from agents_app.models.run import Run
from agents_app.models.tenant import owner


class RunEvent(models.Model):
    """One change of a run, or an act of a person on an agent or schedule (then without a run)."""

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

    class Meta:
        db_table = "drover_run_event"
        verbose_name = "event"
        indexes = [
            models.Index(fields=["run", "id"], name="run_event_of_run"),
            models.Index(fields=["tenant", "id"], name="run_event_of_tenant"),
        ]

    def __str__(self) -> str:
        return self.name


class Heartbeat(models.Model):
    """A sign of life of a run: what state it is in and the last lines it printed."""

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
