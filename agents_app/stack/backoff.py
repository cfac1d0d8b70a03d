"""How long to wait before a process that died is started again; pure."""

FIRST_SECONDS = 0.5
LONGEST_SECONDS = 30.0
# A process that lived this long starts again from the first delay when it dies.
HEALTHY_SECONDS = 60.0


def restart_delay_seconds(failures: int) -> float:
    """0.5, 1, 2, ... 30 for the first, second, third failure in a row."""
    return float(min(LONGEST_SECONDS, FIRST_SECONDS * 2 ** min(failures - 1, 16)))


def failures_after(failures: int, alive_seconds: float) -> int:
    """The failures in a row, counting the one that just ended a life of that length."""
    return 1 if alive_seconds >= HEALTHY_SECONDS else failures + 1
