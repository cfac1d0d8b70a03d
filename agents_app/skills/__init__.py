"""Agents as files: parse is pure, discover reads the disk; rows are the business of sync."""

from agents_app.skills.discover import Discovery, discover
from agents_app.skills.document import Source
from agents_app.skills.errors import Place, SkillError
from agents_app.skills.frontmatter import split_frontmatter
from agents_app.skills.names import agent_name_problem
from agents_app.skills.parse import parse_project, parse_skill
from agents_app.skills.specs import (
    AgentSpec,
    GatewaySpec,
    HooksSpec,
    LocalSpec,
    NotifySpec,
    ProjectSpec,
    RuntimeSpec,
    ScheduleSpec,
    WebhookSourceSpec,
    WebhookSpec,
)

__all__ = [
    "AgentSpec",
    "Discovery",
    "GatewaySpec",
    "HooksSpec",
    "LocalSpec",
    "NotifySpec",
    "Place",
    "ProjectSpec",
    "RuntimeSpec",
    "ScheduleSpec",
    "SkillError",
    "Source",
    "WebhookSourceSpec",
    "WebhookSpec",
    "agent_name_problem",
    "discover",
    "parse_project",
    "parse_skill",
    "split_frontmatter",
]
