"""The interface of a translator of fields that another system has in SKILL.md and config.toml."""

from typing import Protocol

from agents_app.skills.document import Document
from agents_app.skills.tables import Layer


class Dialect(Protocol):
    """Turns the fields of another system into those of Drover; invalid values are reported.

    Fields that neither system has stay in the document, where they are refused.
    """

    # The fields of agents that Drover itself does not have.
    agent_fields: frozenset[str]

    def project(self, layer: Layer) -> Document:
        """The fields of the project's config.toml."""
        ...

    def agent(self, layer: Layer) -> Document:
        """The fields of one file of an agent."""
        ...

    def merged_agent(self, layer: Layer) -> Document:
        """The fields of both files of an agent; those of `agent_fields` must be gone."""
        ...
