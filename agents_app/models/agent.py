"""What an agent is, as last read from its directory."""

from django.db import models

from agents_app.models.tenant import Tenant


class Agent(models.Model):
    """A directory with a SKILL.md; the row outlives the directory, because history does."""

    class OnLost(models.TextChoices):
        FAIL = "fail"
        RETRY = "retry"

    tenant = models.ForeignKey(Tenant, on_delete=models.CASCADE, related_name="agents")
    name = models.CharField(max_length=64)
    description = models.CharField(max_length=1024, blank=True)
    instructions = models.TextField(blank=True)
    command = models.JSONField(default=list, blank=True)
    directory = models.CharField(max_length=1024, blank=True)

    # What the database decides by; changed by people at run time, until the file changes again.
    scale = models.PositiveIntegerField(default=1)
    paused_at = models.DateTimeField(null=True, blank=True)
    pause_note = models.CharField(max_length=500, blank=True)
    removed_at = models.DateTimeField(null=True, blank=True)
    # By a rule: two rules that want it at the same time start it once.
    summoned_at = models.DateTimeField(null=True, blank=True, editable=False)

    timeout_seconds = models.FloatField(default=900)
    work_queue_size = models.PositiveIntegerField(default=100)
    # Of schedules that name none; empty: the host's.
    timezone = models.CharField(max_length=64, blank=True)
    max_reruns = models.PositiveIntegerField(default=10)
    max_call_depth = models.PositiveIntegerField(default=3)
    retries = models.PositiveIntegerField(default=0)
    on_lost = models.CharField(max_length=8, choices=OnLost.choices, default=OnLost.FAIL)
    # Whether its runs may write `/schedule` lines into their output.
    schedules_from_output = models.BooleanField(default=True, db_default=True)
    # Whether its runs are told messages on their standard input.
    messages_on_stdin = models.BooleanField(default=False, db_default=False)
    harness = models.CharField(max_length=20, blank=True, db_default="")
    runtime = models.JSONField(default=dict, blank=True)
    budget = models.JSONField(default=dict, blank=True)
    # Set when a cap of its budget was passed; cleared when the window turns.
    over_budget_until = models.DateTimeField(null=True, blank=True, editable=False)
    env = models.JSONField(default=dict, blank=True)
    params = models.JSONField(default=dict, blank=True)
    hooks = models.JSONField(default=dict, blank=True)
    credentials = models.JSONField(default=list, blank=True)
    webhooks = models.JSONField(default=list, blank=True)

    # Of the files this was read from: an unchanged hash means nothing to write.
    definition_hash = models.CharField(max_length=64, blank=True, editable=False)
    definition_error = models.TextField(blank=True, editable=False)
    # Counts definitions, so that a worker knows when its cached copy is old.
    revision = models.PositiveIntegerField(default=0, editable=False)
    created_at = models.DateTimeField(auto_now_add=True)
    updated_at = models.DateTimeField(auto_now=True)

    class Meta:
        db_table = "drover_agent"
        constraints = [
            models.UniqueConstraint(fields=["tenant", "name"], name="agent_name_once_per_tenant")
        ]

    def __str__(self) -> str:
        return self.name

    @property
    def enabled(self) -> bool:
        """Scale 0 and a removed directory mean the same: no runs of any kind."""
        return self.scale > 0 and self.removed_at is None

    @property
    def queue(self) -> str:
        """Never the name: a name is a user's text, a queue is a key in Redis."""
        return queue_name(self.pk)


def queue_name(agent_id: int) -> str:
    return f"agent.{agent_id}"
