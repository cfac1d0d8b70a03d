"""SKILL.md and config.toml to specs: text in, frozen values out.

Belongs here: parsing and validating project files.
Does not belong here: tables (project) and clocks.
"""

from agents_app.skills.discover import Discovery, discover_project
from agents_app.skills.errors import SkillError, SourcePlace
from agents_app.skills.fields import WORD
from agents_app.skills.specs import (
    AgentSpec,
    BudgetSpec,
    NotifySpec,
    ProjectBudgetSpec,
    ProjectSpec,
    ScheduleSpec,
    WebhookSourceSpec,
)

__all__ = [
    "WORD",
    "AgentSpec",
    "BudgetSpec",
    "Discovery",
    "NotifySpec",
    "ProjectBudgetSpec",
    "ProjectSpec",
    "ScheduleSpec",
    "SkillError",
    "SourcePlace",
    "WebhookSourceSpec",
    "discover_project",
]
