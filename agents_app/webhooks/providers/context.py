"""What a delivery says, in words that are the same for every provider; not who may send it."""

from dataclasses import dataclass, fields
from typing import Any


@dataclass(frozen=True, slots=True, kw_only=True)
class Context:
    """`None` means the provider said nothing of it; `timestamp` is a text as people read it."""

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
    # Something that will conclude and has not yet: its conclusion is null, not unheard of.
    unconcluded: bool = False

    def as_dict(self) -> dict[str, Any]:
        """For the prompt and for storing: without what was not said."""
        said = {f.name: getattr(self, f.name) for f in fields(self) if f.name != "unconcluded"}
        found = {name: value for name, value in said.items() if value is not None}
        if self.labels is not None:
            found["labels"] = list(self.labels)
        return {**found, "conclusion": None} if self.unconcluded else found
