"""How far away a moment is, as people say it; pure."""

from datetime import datetime

_UNITS = ((86_400, "d"), (3_600, "h"), (60, "min"), (1, "s"))


def rough(seconds: float) -> str:
    """In the largest unit of which there are at least two."""
    size, name = next((unit for unit in _UNITS if seconds >= 2 * unit[0]), _UNITS[-1])
    return f"{int(seconds // size)} {name}"


def relative(moment: datetime, now: datetime) -> str:
    """`in 5 min`, `2 h ago`."""
    far = (moment - now).total_seconds()
    if abs(far) < 1:
        return "now"
    return f"in {rough(far)}" if far > 0 else f"{rough(-far)} ago"
