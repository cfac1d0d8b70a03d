"""Locks that agents hold on things outside, and who waits for them."""

from django.db import models

from agents_app.models.run import Run
from agents_app.models.tenant import Tenant


class ResourceLock(models.Model):
    """One holder of one URI. Another holder is another row, so the row's number is the fence:
    it only ever grows."""

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
    """Somebody who was told that a lock is taken; kept until they get it, give up or end."""

    tenant = models.ForeignKey(Tenant, on_delete=models.CASCADE, related_name="+")
    uri = models.CharField(max_length=1024)
    holder = models.CharField(max_length=200)
    run = models.ForeignKey(Run, on_delete=models.CASCADE, null=True, blank=True, related_name="+")
    since = models.DateTimeField()
    asked_at = models.DateTimeField()
    # It keeps asking, and whoever came later must let it go first.
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
