"""A trigger that fires at one instant and never again."""

from dataclasses import dataclass, field
from datetime import UTC, datetime


@dataclass(frozen=True, slots=True)
class OnceTrigger:
    """Fires at `at`, which is in UTC."""

    text: str = field(compare=False)
    at: datetime

    @property
    def expression(self) -> str:
        return f"at {self.at.astimezone(UTC).replace(tzinfo=None).isoformat()}Z"
