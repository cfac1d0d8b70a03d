"""The delay before a process that exited is restarted; pure."""

FIRST_SECONDS = 0.5
LONGEST_SECONDS = 30.0
# A process that lived this long starts again from the first delay when it dies.
HEALTHY_SECONDS = 60.0


def restart_delay_seconds(failures: int) -> float:
    """The delay after so many failures in a row: 0.5, 1, 2, ... 30 seconds."""
    return float(min(LONGEST_SECONDS, FIRST_SECONDS * 2 ** min(failures - 1, 16)))


def failures_after(failures: int, alive_seconds: float) -> int:
    """The failures in a row after a process exited that had run for `alive_seconds`."""
    return 1 if alive_seconds >= HEALTHY_SECONDS else failures + 1
