"""Agents, as last read from their directories."""

from pathlib import Path

from django.db import models

from agents_app.models.tenant import Tenant

SKILL_FILE = "SKILL.md"


class Agent(models.Model):
    """An agent of the project; the row remains after its file, for its history."""

    class OnLost(models.TextChoices):
        FAIL = "fail"
        RETRY = "retry"

    tenant = models.ForeignKey(Tenant, on_delete=models.CASCADE, related_name="agents")
    name = models.CharField(max_length=64)
    description = models.CharField(max_length=1024, blank=True)
    instructions = models.TextField(blank=True)
    command = models.JSONField(default=list, blank=True)
    directory = models.CharField(max_length=1024, blank=True)
    # The file in the directory that defines the agent; herdctl has files of other names.
    file_name = models.CharField(
        max_length=255, default=SKILL_FILE, db_default=SKILL_FILE, editable=False
    )

    # Set by people at run time until the file changes again.
    scale = models.PositiveIntegerField(default=1)
    paused_at = models.DateTimeField(null=True, blank=True)
    pause_note = models.CharField(max_length=500, blank=True)
    removed_at = models.DateTimeField(null=True, blank=True)
    # By a rule: two rules that summon the agent within a minute start it once.
    summoned_at = models.DateTimeField(null=True, blank=True, editable=False)

    timeout_seconds = models.FloatField(default=900)
    work_queue_size = models.PositiveIntegerField(default=100)
    # The default of its schedules; empty: the time zone of the host.
    timezone = models.CharField(max_length=64, blank=True)
    max_reruns = models.PositiveIntegerField(default=10)
    max_call_depth = models.PositiveIntegerField(default=3)
    retries = models.PositiveIntegerField(default=0)
    on_lost = models.CharField(max_length=8, choices=OnLost.choices, default=OnLost.FAIL)
    # Whether its runs may write `/schedule` lines into their output.
    schedules_from_output = models.BooleanField(default=True, db_default=True)
    # Whether its runs get messages on their standard input.
    messages_on_stdin = models.BooleanField(default=False, db_default=False)
    harness = models.CharField(max_length=20, blank=True, db_default="")
    runtime = models.JSONField(default=dict, blank=True)
    budget = models.JSONField(default=dict, blank=True)
    # Set when its budget is used up; cleared when the next period begins.
    over_budget_until = models.DateTimeField(null=True, blank=True, editable=False)
    env = models.JSONField(default=dict, blank=True)
    params = models.JSONField(default=dict, blank=True)
    hooks = models.JSONField(default=dict, blank=True)
    credentials = models.JSONField(default=list, blank=True)
    webhooks = models.JSONField(default=list, blank=True)
    # Polled before a firing starts a run, unless the schedule has a source of its own.
    work_source = models.JSONField(null=True, blank=True)

    # Of the files of the agent: with an unchanged hash nothing is written.
    definition_hash = models.CharField(max_length=64, blank=True, editable=False)
    definition_error = models.TextField(blank=True, editable=False)
    # Increases with each definition: a worker reads a newer one than its cached copy.
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
    def hook_credentials(self) -> list[str]:
        """The credentials that only the requests of its hooks use."""
        return list(self.hooks.get("credentials") or ())

    @property
    def enabled(self) -> bool:
        """An agent with scale 0 or without a directory starts no runs."""
        return self.scale > 0 and self.removed_at is None

    @property
    def definition_file(self) -> Path:
        return Path(self.directory or f"agents/{self.name}") / self.file_name

    @property
    def queue(self) -> str:
        """Built from the id, because a queue is a key in Redis and names are texts of users."""
        return queue_name(self.pk)


def queue_name(agent_id: int) -> str:
    return f"agent.{agent_id}"
