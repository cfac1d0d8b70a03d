"""The domain: every table, every rule; knows nothing of HTTP.

For Python code that builds on Drover, this package offers what it needs to reason about intervals.
"""

from agents_app.errors import (
    IntervalParseError,
    SchedulerError,
    SchedulerShutdownError,
    ScheduleTriggerError,
)
from agents_app.triggers import calculate_next_trigger, is_schedule_due, parse_interval

# The only place of the version: the distribution, `drover --version` and the API read it here.
__version__ = "0.2.0"

__all__ = [
    "IntervalParseError",
    "ScheduleTriggerError",
    "SchedulerError",
    "SchedulerShutdownError",
    "__version__",
    "calculate_next_trigger",
    "is_schedule_due",
    "parse_interval",
]
