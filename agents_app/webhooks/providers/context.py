"""The fields of an event, with the same names for every provider."""

from dataclasses import dataclass, fields
from typing import Any


@dataclass(frozen=True, slots=True, kw_only=True)
class Context:
    """`None` means that the payload has no such field; `timestamp` is text in ISO 8601."""

    source: str
    event: str
    action: str | None = None
    repo: str = ""
    number: int | None = None
    title: str | None = None
    body: str | None = None
    url: str | None = None
    author: str | None = None
    assignee: str | None = None
    labels: tuple[str, ...] | None = None
    branch: str | None = None
    conclusion: str | None = None
    comment: str | None = None
    sender: str = "unknown"
    timestamp: str = ""
    delivery: str | None = None
    # The event has a conclusion that is not known yet: `conclusion` is null instead of missing.
    unconcluded: bool = False

    def as_dict(self) -> dict[str, Any]:
        """For the prompt and for storing, without the fields that the payload does not have."""
        values = {f.name: getattr(self, f.name) for f in fields(self) if f.name != "unconcluded"}
        found = {name: value for name, value in values.items() if value is not None}
        if self.labels is not None:
            found["labels"] = list(self.labels)
        return {**found, "conclusion": None} if self.unconcluded else found
