"""Worker processes, their heartbeats and their hosts.

These rows belong to the installation, not to a tenant: a worker serves them all.
"""

from django.db import models
from django.db.models import Q


class Scheduler(models.Model):
    """The only row: whether this installation is running, draining or stopped."""

    class State(models.TextChoices):
        RUNNING = "running"
        # No run starts; when the last run has ended, all processes exit.
        DRAINING = "draining"
        STOPPED = "stopped"

    state = models.CharField(max_length=8, choices=State.choices, default=State.RUNNING)
    started_at = models.DateTimeField(null=True, blank=True)
    check_count = models.PositiveBigIntegerField(default=0)
    trigger_count = models.PositiveBigIntegerField(default=0)
    last_check_at = models.DateTimeField(null=True, blank=True)
    # After a jump of the clock no expired lease is taken over until then.
    reap_after = models.DateTimeField(null=True, blank=True)
    last_reconcile_at = models.DateTimeField(null=True, blank=True)

    class Meta:
        db_table = "drover_scheduler"
        verbose_name = "scheduler"
        verbose_name_plural = "scheduler"

    def __str__(self) -> str:
        return str(self.state)


class Worker(models.Model):
    """A worker process from start to end; its runs share its lease."""

    class State(models.TextChoices):
        ALIVE = "alive"
        DRAINING = "draining"
        STOPPED = "stopped"
        DEAD = "dead"

    name = models.CharField(max_length=255)
    host = models.CharField(max_length=255)
    boot_id = models.CharField(max_length=64)
    pid = models.PositiveIntegerField()
    # The start of the process in seconds since boot: distinguishes a reused pid.
    pid_started = models.FloatField()
    concurrency = models.PositiveIntegerField()
    state = models.CharField(max_length=8, choices=State.choices, default=State.ALIVE)
    started_at = models.DateTimeField()
    lease_until = models.DateTimeField()
    ended_at = models.DateTimeField(null=True, blank=True)

    class Meta:
        db_table = "drover_worker"
        indexes = [
            models.Index(
                fields=["lease_until"], name="worker_live", condition=Q(ended_at__isnull=True)
            )
        ]

    def __str__(self) -> str:
        return self.name


class MachineSnapshot(models.Model):
    """The load of a host at one moment."""

    host = models.CharField(max_length=255)
    at = models.DateTimeField()
    cpu_percent = models.FloatField()
    memory_used_mb = models.FloatField()
    memory_total_mb = models.FloatField()
    disk_free_mb = models.FloatField()
    active_runs = models.PositiveIntegerField()
    queue_depth = models.PositiveIntegerField()
    active_workers = models.PositiveIntegerField()

    class Meta:
        db_table = "drover_machine_snapshot"
        verbose_name = "machine"
        verbose_name_plural = "machines"
        indexes = [models.Index(fields=["at"], name="machine_snapshot_expired")]

    def __str__(self) -> str:
        return f"{self.host} at {self.at:%Y-%m-%d %H:%M}"
