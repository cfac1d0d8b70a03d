"""New projects and new agents from templates.

Belongs here: templates as files, and writing them without overwriting a file.
Does not belong here: reading projects (skills, formats), questions on a terminal (cli).
"""

from agents_app.scaffold.agent_templates import (
    TEMPLATES,
    NewAgent,
    Template,
    add_agent,
    default_template,
    steps_after_start,
    steps_before_start,
    template_named,
)
from agents_app.scaffold.project_files import NewProject, create_project, refuse_occupied

__all__ = [
    "TEMPLATES",
    "NewAgent",
    "NewProject",
    "Template",
    "add_agent",
    "create_project",
    "default_template",
    "refuse_occupied",
    "steps_after_start",
    "steps_before_start",
    "template_named",
]
