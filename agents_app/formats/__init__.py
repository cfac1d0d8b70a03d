"""Projects and schedules of other systems: Action Llama, herdctl, Metateam.

Belongs here: reading files of other systems as specs, and the report of what is not honoured.
Does not belong here: SKILL.md and config.toml of Drover itself (skills), rows (project).
"""

from agents_app.formats.discover import ProjectDiscovery, read_project
from agents_app.formats.report import ReportLine

__all__ = ["ProjectDiscovery", "ReportLine", "read_project"]
