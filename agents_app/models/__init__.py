"""Every table of Drover."""

from agents_app.models.agent import Agent, queue_name
from agents_app.models.event import Heartbeat, RunEvent
from agents_app.models.login import LoginFailure
from agents_app.models.machine import MachineSnapshot, Scheduler, Worker
from agents_app.models.notify import NotifyTarget
from agents_app.models.run import Run, RunOutput
from agents_app.models.schedule import Firing, Schedule
from agents_app.models.tenant import ApiToken, Tenant
from agents_app.models.webhook import Delivery, WebhookSecret, WebhookSource
from agents_app.models.work import Trigger, WorkItem

__all__ = [
    "Agent",
    "ApiToken",
    "Delivery",
    "Firing",
    "Heartbeat",
    "LoginFailure",
    "MachineSnapshot",
    "NotifyTarget",
    "Run",
    "RunEvent",
    "RunOutput",
    "Schedule",
    "Scheduler",
    "Tenant",
    "Trigger",
    "WebhookSecret",
    "WebhookSource",
    "WorkItem",
    "Worker",
    "queue_name",
]
