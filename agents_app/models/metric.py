"""Counters of /metrics; they include rows that retention has removed."""

from django.db import models


class MetricTotal(models.Model):
    """A counter, or a bucket or sum of a histogram; of the installation, not of a tenant."""

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
    """The last counted row of a table."""

    table = models.CharField(max_length=40, unique=True)
    counted_id = models.BigIntegerField(default=0)
    # Rows below the last counted one that had no outcome yet.
    left = models.JSONField(default=list)
    # Changed by compare and set, so that two beats do not count a row twice.
    turn = models.BigIntegerField(default=0)
    counted_at = models.DateTimeField(null=True)

    class Meta:
        db_table = "drover_metric_cursor"

    def __str__(self) -> str:
        return self.table
