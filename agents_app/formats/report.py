"""What Drover does not honour of a file of another system, as values."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class ReportLine:
    """A field or line of a foreign file that Drover does not honour as it stands."""

    file: str
    line: int  # 1-based; 0 if the format has no lines
    field: str
    why: str
    advice: str
