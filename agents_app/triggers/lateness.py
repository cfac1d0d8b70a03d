"""Whether a firing is late, and by how much."""

from datetime import timedelta

# A firing after this delay counts as late: only a beat that was down is so late.
LATE = timedelta(seconds=10)


def format_lateness(seconds: float) -> str:
    for size, unit in ((86_400, "d"), (3600, "h"), (60, "min")):
        if seconds >= size:
            return f"{seconds / size:.0f} {unit}"
    return f"{seconds:.0f} s"
