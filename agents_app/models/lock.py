"""Locks that runs hold on external resources, and the runs that wait for them."""

from django.db import models

from agents_app.models.run import Run
from agents_app.models.tenant import Tenant


class ResourceLock(models.Model):
    """The holder of a URI. The next holder gets a new row, so the id is a fencing token."""

    tenant = models.ForeignKey(Tenant, on_delete=models.CASCADE, related_name="locks")
    uri = models.CharField(max_length=1024)
    holder = models.CharField(max_length=200)
    run = models.ForeignKey(
        Run, on_delete=models.CASCADE, null=True, blank=True, related_name="locks"
    )
    held_since = models.DateTimeField()
    ttl_seconds = models.FloatField()
    expires_at = models.DateTimeField()

    class Meta:
        db_table = "drover_resource_lock"
        verbose_name = "lock"
        constraints = [
            models.UniqueConstraint(fields=["tenant", "uri"], name="resource_lock_held_once")
        ]

    def __str__(self) -> str:
        return self.uri


class LockWait(models.Model):
    """A run that waits for a lock; deleted when it gets the lock, gives up or ends."""

    tenant = models.ForeignKey(Tenant, on_delete=models.CASCADE, related_name="+")
    uri = models.CharField(max_length=1024)
    holder = models.CharField(max_length=200)
    run = models.ForeignKey(Run, on_delete=models.CASCADE, null=True, blank=True, related_name="+")
    since = models.DateTimeField()
    asked_at = models.DateTimeField()
    # The last request of the run; runs that came later wait for it.
    in_line = models.BooleanField(default=False)

    class Meta:
        db_table = "drover_lock_wait"
        verbose_name = "lock wait"
        constraints = [
            models.UniqueConstraint(
                fields=["tenant", "holder", "uri"], name="lock_wait_once_per_holder"
            )
        ]

    def __str__(self) -> str:
        return f"{self.holder} waits for {self.uri}"
