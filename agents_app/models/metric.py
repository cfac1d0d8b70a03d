"""Counts that only grow: what /metrics says of rows that retention may have removed since."""

from django.db import models


class MetricTotal(models.Model):
    """One count, or one bucket or sum of a histogram; of the installation, not of a tenant."""

    name = models.CharField(max_length=60)
    # The values of its labels, as a JSON list.
    labels = models.CharField(max_length=200)
    value = models.FloatField()

    class Meta:
        db_table = "drover_metric_total"
        constraints = [models.UniqueConstraint(fields=["name", "labels"], name="metric_total_once")]

    def __str__(self) -> str:
        return f"{self.name} {self.labels}"


class MetricCursor(models.Model):
    """How far a table has been counted."""

    table = models.CharField(max_length=40, unique=True)
    counted_id = models.BigIntegerField(default=0)
    # Up to there, but for these: they had no outcome yet.
    left = models.JSONField(default=list)
    # Compared and set: what two beats count at once is counted once.
    turn = models.BigIntegerField(default=0)
    counted_at = models.DateTimeField(null=True)

    class Meta:
        db_table = "drover_metric_cursor"

    def __str__(self) -> str:
        return self.table
