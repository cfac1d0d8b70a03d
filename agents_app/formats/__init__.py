"""Projects and schedules of other systems: Action Llama, herdctl, Metateam, cron and others.

Belongs here: reading files of other systems as specs, the report of what is not honoured, and
the writer of imported agents.
Does not belong here: SKILL.md and config.toml of Drover itself (skills), rows (project).
"""

from agents_app.formats.credential_files import (
    DIRECTORY,
    CredentialDirectory,
    read_credentials,
)
from agents_app.formats.discover import ProjectDiscovery, read_project
from agents_app.formats.imported import (
    ImportContext,
    Imported,
    ImportedAgent,
    ImportedSchedule,
)
from agents_app.formats.preview import FirePreview, preview_fires
from agents_app.formats.registry import FORMATS, read_source
from agents_app.formats.report import ReportLine
from agents_app.formats.source_files import STDIN, open_source
from agents_app.formats.write_agents import AgentWriter, WrittenAgent

__all__ = [
    "DIRECTORY",
    "FORMATS",
    "STDIN",
    "AgentWriter",
    "CredentialDirectory",
    "FirePreview",
    "ImportContext",
    "Imported",
    "ImportedAgent",
    "ImportedSchedule",
    "ProjectDiscovery",
    "ReportLine",
    "WrittenAgent",
    "open_source",
    "preview_fires",
    "read_credentials",
    "read_project",
    "read_source",
]
