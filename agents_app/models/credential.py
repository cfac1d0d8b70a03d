"""Secrets for runs, and the usage of runs."""

from django.db import models

from agents_app.models.agent import Agent
from agents_app.models.tenant import Tenant, owner


class Credential(models.Model):
    """An encrypted secret of a type; runs get it, people cannot read it again."""

    tenant = models.ForeignKey(Tenant, on_delete=models.CASCADE, related_name="credentials")
    type = models.CharField(max_length=64)
    instance = models.CharField(max_length=64, default="default")
    sealed = models.TextField(editable=False)
    # The key that encrypted it: shows for which rows an old key is still needed.
    key_id = models.CharField(max_length=16, editable=False)
    created_at = models.DateTimeField()
    changed_at = models.DateTimeField()
    changed_by = models.CharField(max_length=200, blank=True)

    class Meta:
        db_table = "drover_credential"
        constraints = [
            models.UniqueConstraint(
                fields=["tenant", "type", "instance"], name="credential_once_per_instance"
            )
        ]

    def __str__(self) -> str:
        return f"{self.type}:{self.instance}"


class Usage(models.Model):
    """The usage of an agent on one day, for budgets; kept longer than runs."""

    tenant = owner()
    agent = models.ForeignKey(Agent, on_delete=models.CASCADE, related_name="+", db_index=False)
    day = models.DateField()
    tokens = models.PositiveBigIntegerField(default=0)
    cost_usd = models.DecimalField(max_digits=14, decimal_places=6, default=0)

    class Meta:
        db_table = "drover_usage"
        verbose_name_plural = "usage"
        constraints = [
            models.UniqueConstraint(fields=["agent", "day"], name="usage_once_per_agent_and_day")
        ]
        indexes = [models.Index(fields=["tenant", "day"], name="usage_of_tenant")]

    def __str__(self) -> str:
        return f"agent {self.agent_id} on {self.day}"
