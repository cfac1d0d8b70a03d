"""Webhook sources, their secrets, and the deliveries as received."""

from django.db import models
from django.db.models import Q

from agents_app.models.tenant import Tenant, owner


class WebhookSource(models.Model):
    """A sender: an address below /webhooks/ and the secrets that authenticate it."""

    class Origin(models.TextChoices):
        FILE = "file", "config.toml"
        PERSON = "person"

    tenant = models.ForeignKey(Tenant, on_delete=models.CASCADE, related_name="webhook_sources")
    name = models.CharField(max_length=100)
    type = models.CharField(max_length=20, help_text="The provider: github, slack, generic, ...")
    origin = models.CharField(max_length=8, choices=Origin.choices, default=Origin.PERSON)
    # Secrets that are not stored here: env:NAME or file:path.
    secret_refs = models.JSONField(default=list, blank=True, editable=False)
    credential = models.CharField(
        max_length=100,
        blank=True,
        help_text="Also accept the secrets of this name that belong to other sources.",
    )
    allow_unsigned = models.BooleanField(
        default=False, help_text="Accept unsigned requests while the source has no secret."
    )
    options = models.JSONField(
        default=dict, blank=True, help_text="The provider's own settings, such as a header's name."
    )
    disabled_at = models.DateTimeField(null=True, blank=True)
    # Removed from config.toml; its deliveries remain.
    removed_at = models.DateTimeField(null=True, blank=True, editable=False)
    # Refused requests; a few of them are stored as deliveries without a body.
    refused_count = models.PositiveBigIntegerField(default=0, editable=False)
    last_refused_at = models.DateTimeField(null=True, blank=True, editable=False)
    created_at = models.DateTimeField(auto_now_add=True)

    class Meta:
        db_table = "drover_webhook_source"
        constraints = [
            models.UniqueConstraint(
                fields=["tenant", "name"], name="webhook_source_name_once_per_tenant"
            )
        ]

    def __str__(self) -> str:
        return self.name


class WebhookSecret(models.Model):
    """One of the secrets of a source; a new one can be added before the old one is revoked."""

    tenant = owner()
    source = models.ForeignKey(WebhookSource, on_delete=models.CASCADE, related_name="secrets")
    name = models.CharField(max_length=100)
    sealed = models.TextField(editable=False)
    # The key that encrypted it: shows for which rows an old key is still needed.
    key_id = models.CharField(max_length=16, editable=False)
    created_at = models.DateTimeField()
    revoked_at = models.DateTimeField(null=True, blank=True)

    class Meta:
        db_table = "drover_webhook_secret"
        constraints = [
            models.UniqueConstraint(
                fields=["source", "name"],
                name="webhook_secret_name_once_per_source",
                condition=Q(revoked_at__isnull=True),
            )
        ]

    def __str__(self) -> str:
        return self.name


class Delivery(models.Model):
    """A received webhook as it came; committed before the sender gets its answer.

    A refused one has neither body nor work; of those the latest of each source are kept."""

    class Outcome(models.TextChoices):
        MATCHED = "matched"
        UNMATCHED = "unmatched", "No agent matched"
        IGNORED = "ignored", "Ignored: not an event for agents"
        UNPARSEABLE = "unparseable"
        REFUSED = "refused", "Refused: not stored"

    tenant = owner()
    source = models.ForeignKey(
        WebhookSource, on_delete=models.CASCADE, related_name="deliveries", db_index=False
    )
    provider = models.CharField(max_length=20)
    delivery_id = models.CharField(max_length=200)
    # A hash of the body is used as the id for a few minutes only: then the body may repeat.
    id_expired = models.BooleanField(default=False)
    received_at = models.DateTimeField()
    signed_by = models.CharField(max_length=120)
    event = models.CharField(max_length=200, blank=True)
    action = models.CharField(max_length=200, blank=True)
    outcome = models.CharField(max_length=11, choices=Outcome.choices)
    reason = models.CharField(max_length=500, blank=True)
    matched = models.PositiveIntegerField(default=0)
    skipped = models.PositiveIntegerField(default=0)
    headers = models.TextField()
    body = models.BinaryField()
    # Of providers whose ids are not signed: the body must not repeat for a day. NULL afterwards.
    body_sha256 = models.BinaryField(null=True, editable=False)
    # Both as JSON: the context for agents, and the decision for each agent.
    context = models.TextField(blank=True)
    decisions = models.TextField(default="[]")
    replays = models.PositiveIntegerField(default=0)
    replayed_at = models.DateTimeField(null=True, blank=True)

    class Meta:
        db_table = "drover_delivery"
        verbose_name_plural = "deliveries"
        constraints = [
            # Guarantees promise 2: a repeated delivery creates no second work item.
            models.UniqueConstraint(
                fields=["source", "delivery_id"],
                name="delivery_once_per_source",
                condition=Q(id_expired=False),
            ),
            models.UniqueConstraint(
                fields=["source", "body_sha256"],
                name="delivery_body_once_per_source",
                # Also lets SQLite create the index without copying the table.
                condition=Q(body_sha256__isnull=False),
            ),
        ]
        indexes = [
            models.Index(fields=["tenant", "id"], name="delivery_of_tenant"),
            models.Index(fields=["received_at"], name="delivery_expired"),
            models.Index(
                fields=["source", "id"], name="delivery_refused", condition=Q(outcome="refused")
            ),
        ]

    def __str__(self) -> str:
        return f"delivery {self.pk}"
