"""Every table of Drover.

Belongs here: columns, constraints and indexes.
Does not belong here: decisions and state changes (runs.lifecycle).
"""

from agents_app.models.agent import SKILL_FILE, Agent, queue_name
from agents_app.models.call import AgentCall, Message
from agents_app.models.credential import Credential, Usage
from agents_app.models.event import Heartbeat, RunEvent
from agents_app.models.lock import LockWait, ResourceLock
from agents_app.models.login import LoginFailure
from agents_app.models.machine import MachineSnapshot, Scheduler, Worker
from agents_app.models.metric import MetricCursor, MetricTotal
from agents_app.models.notify import NotifyTarget
from agents_app.models.rule import RuleBook, RuleState
from agents_app.models.run import LENT, Run, RunOutput
from agents_app.models.schedule import Firing, Schedule
from agents_app.models.tenant import DEFAULT_TENANT, ApiToken, Tenant
from agents_app.models.webhook import Delivery, WebhookSecret, WebhookSource
from agents_app.models.work import Trigger, WorkItem
from agents_app.models.work_source import WorkClaim, WorkSource

__all__ = [
    "DEFAULT_TENANT",
    "LENT",
    "SKILL_FILE",
    "Agent",
    "AgentCall",
    "ApiToken",
    "Credential",
    "Delivery",
    "Firing",
    "Heartbeat",
    "LockWait",
    "LoginFailure",
    "MachineSnapshot",
    "Message",
    "MetricCursor",
    "MetricTotal",
    "NotifyTarget",
    "ResourceLock",
    "RuleBook",
    "RuleState",
    "Run",
    "RunEvent",
    "RunOutput",
    "Schedule",
    "Scheduler",
    "Tenant",
    "Trigger",
    "Usage",
    "WebhookSecret",
    "WebhookSource",
    "WorkClaim",
    "WorkItem",
    "WorkSource",
    "Worker",
    "queue_name",
]
