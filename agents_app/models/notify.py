"""Targets of notifications and their positions in the events."""

from django.db import models

from agents_app.models.tenant import Tenant


class NotifyTarget(models.Model):
    """A `[[notify]]` of config.toml; all events up to `cursor` are sent or not wanted."""

    tenant = models.ForeignKey(Tenant, on_delete=models.CASCADE, related_name="notify_targets")
    url = models.CharField(max_length=2000)
    events = models.JSONField(default=list)
    secret_ref = models.CharField(max_length=500, blank=True)
    format = models.CharField(max_length=5, default="json")
    cursor = models.BigIntegerField(default=0)
    failing_since = models.DateTimeField(null=True, blank=True)
    failures = models.PositiveIntegerField(default=0)
    next_try_at = models.DateTimeField(null=True, blank=True)
    last_error = models.CharField(max_length=500, blank=True)

    class Meta:
        db_table = "drover_notify_target"
        verbose_name = "notification"
        constraints = [models.UniqueConstraint(fields=["tenant", "url"], name="notify_target_once")]

    def __str__(self) -> str:
        return f"notification {self.pk}"
