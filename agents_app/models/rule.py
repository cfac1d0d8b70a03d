"""The state of the rules of `scheduler.rules`; their definitions are in the file."""

from datetime import datetime

from django.db import models

from agents_app.models.tenant import Tenant
from agents_app.rules.language import problem_with_position


class RuleBook(models.Model):
    """The state of the file: its last version, whether it is disabled or silenced."""

    tenant = models.OneToOneField(Tenant, on_delete=models.CASCADE, related_name="rule_book")
    # Of the file's text; empty: no file. An unchanged file is not read again.
    fingerprint = models.CharField(max_length=64, blank=True, editable=False)
    # Errors of lines: {code, line, column, problem, expected, raw}, in the file's order.
    errors = models.JSONField(default=list, blank=True, editable=False)
    loaded_at = models.DateTimeField(null=True, blank=True)
    # The last evaluation: after a long time since then, missed due times are skipped.
    ticked_at = models.DateTimeField(null=True, blank=True)
    # Messages are suppressed from then on; without an end until a person ends it.
    silenced_at = models.DateTimeField(null=True, blank=True)
    silent_until = models.DateTimeField(null=True, blank=True)
    silenced_by = models.CharField(max_length=200, blank=True)
    # Evaluations in a row that raised an error; too many disable the rules.
    crashes = models.PositiveIntegerField(default=0)
    disabled_at = models.DateTimeField(null=True, blank=True)
    crash = models.CharField(max_length=500, blank=True)
    # Of the text that raised the error: another text enables the rules.
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
        """Errors of the file for people, a sentence each."""
        lines = [f"scheduler.rules: {problem_with_position(error)}" for error in self.errors]
        off = f"scheduler.rules is not evaluated: {self.crash}; save it again, or restart Drover"
        return [*([off] if self.disabled_at else []), *lines]


class RuleState(models.Model):
    """One rule, identified by its name: its next due time and its last outcome."""

    class Status(models.TextChoices):
        WAITING = "waiting"  # not due yet
        OK = "ok"
        SKIP = "skip"  # due without an action: `reason` explains it
        RUN = "run"  # its action is being performed
        BACKOFF = "backoff"  # `failures` in a row; not before `backoff_until`
        ABANDONED = "abandoned"  # the process that performed its action died

    # The index of the constraint serves queries by tenant.
    tenant = models.ForeignKey(
        Tenant, on_delete=models.CASCADE, related_name="rules", db_index=False
    )
    name = models.CharField(max_length=200)
    # Normalized: a rule with the same text is the same rule.
    text = models.TextField()
    line = models.PositiveIntegerField()
    # Null: removed from the file while its action is being performed.
    next_due_at = models.DateTimeField(null=True, blank=True)
    evaluated_at = models.DateTimeField(null=True, blank=True)
    fired_at = models.DateTimeField(null=True, blank=True)
    status = models.CharField(max_length=9, choices=Status.choices, default=Status.WAITING)
    reason = models.CharField(max_length=500, blank=True)
    failures = models.PositiveIntegerField(default=0)
    backoff_until = models.DateTimeField(null=True, blank=True)
    # Hash of the states of its agents at its failure: a change ends the backoff.
    seen = models.CharField(max_length=64, blank=True, editable=False)
    # Of the last command of the rule.
    exit_code = models.IntegerField(null=True, blank=True)
    tail = models.TextField(blank=True)
    # The process that performs its action, and the deadline of that process.
    held_by = models.CharField(max_length=400, blank=True, editable=False)
    held_until = models.DateTimeField(null=True, blank=True, editable=False)
    # Increases with each change: of two concurrent beats one changes the row.
    revision = models.PositiveBigIntegerField(default=0, editable=False)

    class Meta:
        db_table = "drover_rule"
        verbose_name = "rule"
        constraints = [
            models.UniqueConstraint(fields=["tenant", "name"], name="rule_name_once_per_tenant")
        ]

    def __str__(self) -> str:
        return self.name
