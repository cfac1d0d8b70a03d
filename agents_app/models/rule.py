"""What became of the rules in `scheduler.rules`; what they say is in the file alone."""

from datetime import datetime

from django.db import models

from agents_app.models.tenant import Tenant
from agents_app.rules.language import problem_with_position


class RuleBook(models.Model):
    """The file as a whole: as last read, whether it is obeyed, whether messages are held back."""

    tenant = models.OneToOneField(Tenant, on_delete=models.CASCADE, related_name="rule_book")
    # Of the file's text; empty: there is none. An unchanged one means nothing to read.
    fingerprint = models.CharField(max_length=64, blank=True, editable=False)
    # Lines that are no rules: {code, line, column, problem, expected, raw}, in the file's order.
    errors = models.JSONField(default=list, blank=True, editable=False)
    loaded_at = models.DateTimeField(null=True, blank=True)
    # The last look at the rules: a long time since then is one in which nobody looked.
    ticked_at = models.DateTimeField(null=True, blank=True)
    # Messages are held back from then on, for ever if no end is named.
    silenced_at = models.DateTimeField(null=True, blank=True)
    silent_until = models.DateTimeField(null=True, blank=True)
    silenced_by = models.CharField(max_length=200, blank=True)
    # Looks in a row that broke; too many, and nobody looks until the file changes or Drover starts.
    crashes = models.PositiveIntegerField(default=0)
    disabled_at = models.DateTimeField(null=True, blank=True)
    crash = models.CharField(max_length=500, blank=True)
    # Of the text that broke it: another one is given another chance.
    crash_fingerprint = models.CharField(max_length=64, blank=True, editable=False)

    class Meta:
        db_table = "drover_rule_book"

    def __str__(self) -> str:
        return f"rules of {self.tenant}"

    def is_silent(self, now: datetime) -> bool:
        return self.silenced_at is not None and (
            self.silent_until is None or now < self.silent_until
        )

    @property
    def problems(self) -> list[str]:
        """What people must know of it, a sentence each."""
        lines = [f"scheduler.rules: {problem_with_position(error)}" for error in self.errors]
        off = f"scheduler.rules is not obeyed: {self.crash}; save it again, or restart Drover"
        return [*([off] if self.disabled_at else []), *lines]


class RuleState(models.Model):
    """One rule, known by its name: when it is due next, and what became of it last."""

    class Status(models.TextChoices):
        WAITING = "waiting"  # it was never due
        OK = "ok"
        SKIP = "skip"  # it was due, and did nothing: `reason` says why
        RUN = "run"  # what it does goes on
        BACKOFF = "backoff"  # `failures` in a row; not before `backoff_until`
        ABANDONED = "abandoned"  # whoever did it died meanwhile

    # Found by the constraint's index; one of its own would only be one more to write.
    tenant = models.ForeignKey(
        Tenant, on_delete=models.CASCADE, related_name="rules", db_index=False
    )
    name = models.CharField(max_length=200)
    # In one way of writing: a rule with the same text is the same rule.
    text = models.TextField()
    line = models.PositiveIntegerField()
    # Null: it has left the file, but what it began still goes on.
    next_due_at = models.DateTimeField(null=True, blank=True)
    evaluated_at = models.DateTimeField(null=True, blank=True)
    fired_at = models.DateTimeField(null=True, blank=True)
    status = models.CharField(max_length=9, choices=Status.choices, default=Status.WAITING)
    reason = models.CharField(max_length=500, blank=True)
    failures = models.PositiveIntegerField(default=0)
    backoff_until = models.DateTimeField(null=True, blank=True)
    # How the agents it is about were when it failed: another fate for them is another chance.
    seen = models.CharField(max_length=64, blank=True, editable=False)
    # Of the last command it ran.
    exit_code = models.IntegerField(null=True, blank=True)
    tail = models.TextField(blank=True)
    # The process that does what the rule says, and when it must be done with it.
    held_by = models.CharField(max_length=400, blank=True, editable=False)
    held_until = models.DateTimeField(null=True, blank=True, editable=False)
    # Counts changes: of two beats that look at it at the same moment one moves it.
    revision = models.PositiveBigIntegerField(default=0, editable=False)

    class Meta:
        db_table = "drover_rule"
        verbose_name = "rule"
        constraints = [
            models.UniqueConstraint(fields=["tenant", "name"], name="rule_name_once_per_tenant")
        ]

    def __str__(self) -> str:
        return self.name
