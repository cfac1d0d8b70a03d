"""Tenants, and the tokens of their API clients."""

from pathlib import Path
from zoneinfo import ZoneInfo

from django.db import models

from agents_app import triggers
from agents_app.clock import HOST_ZONE
from agents_app.conf import CONF

# The tenant of the installation; its project directory is DROVER_PROJECT.
DEFAULT_TENANT = "default"


class Tenant(models.Model):
    """The owner of agents and all their rows; a project directory belongs to one tenant."""

    name = models.CharField(max_length=64, unique=True)
    created_at = models.DateTimeField(auto_now_add=True)
    disabled_at = models.DateTimeField(null=True, blank=True)
    paused_at = models.DateTimeField(null=True, blank=True)
    pause_note = models.CharField(max_length=500, blank=True)
    scale = models.PositiveIntegerField(
        null=True, blank=True, help_text="Cap on all unfinished runs together; empty means none."
    )
    # Absolute; empty: no project, and for the tenant `default` DROVER_PROJECT.
    project = models.CharField(max_length=1024, blank=True, default="", db_default="")
    over_budget_until = models.DateTimeField(null=True, blank=True, editable=False)
    settings = models.JSONField(default=dict, blank=True, editable=False)
    definition_errors = models.JSONField(default=list, blank=True, editable=False)

    class Meta:
        db_table = "drover_tenant"
        constraints = [
            models.CheckConstraint(name="tenant_scale_positive", condition=~models.Q(scale=0))
        ]

    def __str__(self) -> str:
        return self.name

    @property
    def project_directory(self) -> Path | None:
        """The directory with the agents, the rules and the config.toml of the tenant, if any."""
        if self.name == DEFAULT_TENANT:
            return CONF.project
        return Path(self.project) if self.project else None

    @property
    def zone(self) -> ZoneInfo:
        """The time zone of its days and rules."""
        return triggers.zone(self.settings.get("timezone") or HOST_ZONE)


def owner() -> "models.ForeignKey[Tenant, Tenant]":
    """The tenant column of a busy table.

    Without a constraint in the database, which would lock the tenant's row for every insert; on
    PostgreSQL this costs more than the insert. The row's parent has one; Django cascades deletes.
    """
    return models.ForeignKey(
        Tenant, on_delete=models.CASCADE, related_name="+", db_index=False, db_constraint=False
    )


class ApiToken(models.Model):
    """A bearer token of a tenant; only its hash is stored."""

    class Scope(models.TextChoices):
        READ = "read"
        OPERATE = "operate"
        ADMIN = "admin"

    tenant = models.ForeignKey(Tenant, on_delete=models.CASCADE, related_name="tokens")
    name = models.CharField(max_length=100)
    sha256 = models.CharField(max_length=64, unique=True, editable=False)
    scope = models.CharField(max_length=10, choices=Scope.choices, default=Scope.READ)
    created_at = models.DateTimeField(auto_now_add=True)
    revoked_at = models.DateTimeField(null=True, blank=True)
    expires_at = models.DateTimeField(
        null=True, blank=True, help_text="From then on the token is refused; empty means never."
    )
    addresses = models.JSONField(
        default=list,
        blank=True,
        help_text="Addresses and networks that may use the token; empty means all.",
    )

    class Meta:
        db_table = "drover_api_token"
        verbose_name = "API token"

    def __str__(self) -> str:
        return self.name
