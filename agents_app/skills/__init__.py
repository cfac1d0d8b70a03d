"""SKILL.md and config.toml to specs: text in, frozen values out.

Belongs here: parsing and validating project files.
Does not belong here: tables (project), clocks, and files of other systems (formats).
"""

from agents_app.skills.dialect import Dialect
from agents_app.skills.discover import (
    Discovery,
    discover_project,
    find_agent_directories,
    read_config,
)
from agents_app.skills.document import Document, KeyPath, SourceText, canonical_path, check_text
from agents_app.skills.errors import Problems, SkillError, SourcePlace
from agents_app.skills.fields import OWN_HEADERS, WORD, did_you_mean
from agents_app.skills.files import read_source
from agents_app.skills.hooks import MAX_REQUEST_SECONDS, is_valid_hook
from agents_app.skills.parse import build_agent, parse_agent_table, parse_skill
from agents_app.skills.specs import (
    AgentSpec,
    BudgetSpec,
    LocalSpec,
    NotifySpec,
    ProjectBudgetSpec,
    ProjectSpec,
    ScheduleSpec,
    WebhookSourceSpec,
    WorkSourceSpec,
)
from agents_app.skills.tables import Layer, dotted, excerpt
from agents_app.skills.toml_reader import read_toml
from agents_app.skills.work_sources import read_work_source
from agents_app.skills.yaml_reader import read_yaml

__all__ = [
    "MAX_REQUEST_SECONDS",
    "OWN_HEADERS",
    "WORD",
    "AgentSpec",
    "BudgetSpec",
    "Dialect",
    "Discovery",
    "Document",
    "KeyPath",
    "Layer",
    "LocalSpec",
    "NotifySpec",
    "Problems",
    "ProjectBudgetSpec",
    "ProjectSpec",
    "ScheduleSpec",
    "SkillError",
    "SourcePlace",
    "SourceText",
    "WebhookSourceSpec",
    "WorkSourceSpec",
    "build_agent",
    "canonical_path",
    "check_text",
    "did_you_mean",
    "discover_project",
    "dotted",
    "excerpt",
    "find_agent_directories",
    "is_valid_hook",
    "parse_agent_table",
    "parse_skill",
    "read_config",
    "read_source",
    "read_toml",
    "read_work_source",
    "read_yaml",
]
