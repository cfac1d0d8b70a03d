"""Calls between agents, and messages to agents."""

from django.db import models
from django.db.models import Q

from agents_app.models.agent import Agent
from agents_app.models.run import Run
from agents_app.models.tenant import owner
from agents_app.models.work import WorkItem


class AgentCall(models.Model):
    """A run's request to another agent; its state is that of its work item.

    `error` is for what the work item does not know: its caller ended, or waited too long.
    """

    tenant = owner()
    caller_run = models.ForeignKey(Run, on_delete=models.CASCADE, related_name="calls")
    agent = models.ForeignKey(Agent, on_delete=models.CASCADE, related_name="+", db_index=False)
    work_item = models.OneToOneField(WorkItem, on_delete=models.CASCADE, related_name="call")
    created_at = models.DateTimeField()
    deadline_at = models.DateTimeField()
    # Set when the caller ends or the deadline passes.
    ended_at = models.DateTimeField(null=True, blank=True)
    error = models.CharField(max_length=500, blank=True)

    class Meta:
        db_table = "drover_agent_call"
        verbose_name = "call"
        indexes = [
            models.Index(
                fields=["deadline_at"],
                name="agent_call_overdue",
                condition=Q(ended_at__isnull=True),
            )
        ]

    def __str__(self) -> str:
        return f"call {self.pk}"


class Message(models.Model):
    """A text for an agent: a running run reads it, otherwise it becomes a work item."""

    tenant = owner()
    agent = models.ForeignKey(
        Agent, on_delete=models.CASCADE, related_name="messages", db_index=False
    )
    text = models.TextField()
    sender = models.CharField(max_length=200, blank=True)
    created_at = models.DateTimeField()
    read_at = models.DateTimeField(null=True, blank=True)
    # The run that reads it, or the work item that it became: never both.
    run = models.ForeignKey(
        Run, on_delete=models.SET_NULL, null=True, blank=True, related_name="messages"
    )
    work_item = models.OneToOneField(
        WorkItem, on_delete=models.SET_NULL, null=True, blank=True, related_name="message"
    )

    class Meta:
        db_table = "drover_message"
        indexes = [
            models.Index(
                fields=["agent", "id"], name="message_unread", condition=Q(read_at__isnull=True)
            ),
            models.Index(fields=["created_at"], name="message_expired"),
        ]

    def __str__(self) -> str:
        return f"message {self.pk}"
