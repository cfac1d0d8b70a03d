"""Work sources that schedules poll, and the claims on their items."""

from django.db import models
from django.db.models import Q

from agents_app.models.agent import Agent
from agents_app.models.schedule import Firing
from agents_app.models.tenant import Tenant, owner
from agents_app.models.work import WorkItem


class WorkSource(models.Model):
    """A `work_source` of a file; agents and schedules with the same settings share the row."""

    tenant = models.ForeignKey(Tenant, on_delete=models.CASCADE, related_name="work_sources")
    type = models.CharField(max_length=20)
    # The repository, team, project or directory, for people.
    name = models.CharField(max_length=1000)
    settings = models.JSONField(default=dict)
    fingerprint = models.CharField(max_length=64, editable=False)
    # The candidates of the last poll; valid while the source answers that nothing has changed.
    queue = models.JSONField(default=list, editable=False)
    etag = models.CharField(max_length=200, blank=True, editable=False)
    polled_at = models.DateTimeField(null=True, blank=True)
    # Before this time nothing is requested: the limit of requests is used up, or errors repeat.
    blocked_until = models.DateTimeField(null=True, blank=True)
    failures = models.PositiveIntegerField(default=0)
    last_error = models.CharField(max_length=500, blank=True)
    # The process that serves the source, and when another one may take over.
    busy_by = models.CharField(max_length=300, blank=True, editable=False)
    busy_until = models.DateTimeField(null=True, blank=True, editable=False)
    # Webhook deliveries up to this one have been read.
    delivery_cursor = models.BigIntegerField(default=0, editable=False)

    class Meta:
        db_table = "drover_work_source"
        verbose_name = "work source"
        constraints = [
            models.UniqueConstraint(
                fields=["tenant", "fingerprint"], name="work_source_once_per_tenant"
            )
        ]

    def __str__(self) -> str:
        return f"{self.type} {self.name}"


class WorkClaim(models.Model):
    """An item of a work source that an agent works on, from before the claim until its report."""

    class Stage(models.TextChoices):
        CLAIMING = "claiming"
        CLAIMED = "claimed"
        ENDED = "ended"

    class Outcome(models.TextChoices):
        NONE = "", "none yet"
        SUCCEEDED = "succeeded"
        FAILED = "failed", "Failed: not tried again"
        RELEASED = "released", "Released: ready again"
        NOT_CLAIMED = "not_claimed", "Not claimed"

    tenant = owner()
    source = models.ForeignKey(WorkSource, on_delete=models.CASCADE, related_name="claims")
    agent = models.ForeignKey(Agent, on_delete=models.CASCADE, related_name="+", db_index=False)
    firing = models.ForeignKey(
        Firing, on_delete=models.SET_NULL, null=True, blank=True, related_name="+"
    )
    work_item = models.OneToOneField(
        WorkItem, on_delete=models.SET_NULL, null=True, blank=True, related_name="claim"
    )
    item_id = models.CharField(max_length=300)
    # A hash of the place and the id: two sources may have the same item.
    item_key = models.CharField(max_length=64, editable=False)
    title = models.CharField(max_length=500, blank=True)
    url = models.CharField(max_length=2000, blank=True)
    # Identifies the claim in the other system.
    token = models.CharField(max_length=32, editable=False)
    # When the item was seen as ready, by the clock of the other system.
    ready_at = models.DateTimeField()
    stage = models.CharField(max_length=8, choices=Stage.choices, default=Stage.CLAIMING)
    outcome = models.CharField(
        max_length=12, choices=Outcome.choices, default=Outcome.NONE, blank=True
    )
    created_at = models.DateTimeField()
    ended_at = models.DateTimeField(null=True, blank=True)
    # Of this item since it was last finished, with this claim.
    failed_attempts = models.PositiveIntegerField(default=0)
    # Attempts to report the end of the claim, and when the next one is due.
    tries = models.PositiveIntegerField(default=0)
    next_try_at = models.DateTimeField(null=True, blank=True)
    last_error = models.CharField(max_length=500, blank=True)

    class Meta:
        db_table = "drover_work_claim"
        verbose_name = "claim"
        constraints = [
            # Of two polls of this installation one gets the item.
            models.UniqueConstraint(
                fields=["tenant", "item_key"],
                name="work_claim_open_once",
                condition=~Q(stage="ended"),
            )
        ]
        indexes = [
            models.Index(
                fields=["source", "stage"], name="work_claim_open", condition=~Q(stage="ended")
            ),
            models.Index(fields=["ended_at"], name="work_claim_expired"),
        ]

    def __str__(self) -> str:
        return f"claim {self.pk}"
