"""Secrets that runs are given, and what runs have cost."""

from django.db import models

from agents_app.models.agent import Agent
from agents_app.models.tenant import Tenant, owner


class Credential(models.Model):
    """A secret of a type, sealed; it can be given to runs but never read again by people."""

    tenant = models.ForeignKey(Tenant, on_delete=models.CASCADE, related_name="credentials")
    type = models.CharField(max_length=64)
    instance = models.CharField(max_length=64, default="default")
    sealed = models.TextField(editable=False)
    # Of the key that sealed it, so that one can tell which rows an old key is still needed for.
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
    """What an agent's runs used on one day, for budgets; runs themselves are deleted earlier."""

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
