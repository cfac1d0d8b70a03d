"""herdctl.yaml, its sub-fleets and agent files to the specs of agents.

Belongs here: the schema, variables, merging and meaning of herdctl's documents.
Does not belong here: SKILL.md (skills) and rows (project).
"""

from agents_app.formats.herdctl.fleet import FleetReader, find_config, read_fleet
from agents_app.formats.herdctl.variables import only_in_files

__all__ = ["FleetReader", "find_config", "only_in_files", "read_fleet"]
