"""Every error Drover raises on purpose; the message is for people, the code for programs."""

from collections.abc import Mapping
from typing import Any, ClassVar


class DroverError(Exception):
    """Something a person can act on: what was wrong, where, what to do."""

    code: ClassVar[str] = "error"
    http_status: ClassVar[int] = 400
    # A permanent error fails the same way next time; only the others are worth a retry.
    permanent: ClassVar[bool] = True


class ConfigError(DroverError):
    """A setting in the environment or in a file cannot be used."""

    code = "bad_config"
    http_status = 500


class NotFound(DroverError):
    """There is no such object, or it belongs to another tenant."""

    code = "not_found"
    http_status = 404


class Refused(DroverError):
    """The object exists, and its state does not allow this."""

    code = "refused"
    http_status = 409


class TriggerParseError(DroverError):
    """A text that should say when does not; `accepted` lists what could be written, a form a line.

    `position` is the index of the character at which the text stops making sense.
    """

    code = "bad_trigger"

    def __init__(
        self,
        reason: str,
        *,
        text: str,
        field: str | None = None,
        position: int | None = None,
        accepted: str = "",
    ) -> None:
        super().__init__(reason)
        self.reason = reason
        self.text = text
        self.field = field
        self.position = position
        self.accepted = accepted


class SchedulerError(DroverError):
    """Base of the errors offered to Python code that builds on Drover."""

    code = "scheduler"


class IntervalParseError(SchedulerError):
    """An `interval:` text is not a whole number with a unit."""

    code = "bad_interval"

    def __init__(self, message: str, *, interval: str, kind: str) -> None:
        super().__init__(message)
        self.interval = interval
        self.kind = kind


class ScheduleTriggerError(SchedulerError):
    """A schedule was due and could not be turned into work."""

    code = "trigger_failed"

    def __init__(self, message: str, context: Mapping[str, Any] | None = None) -> None:
        super().__init__(message)
        self.context = dict(context or {})


class SchedulerShutdownError(SchedulerError):
    """The scheduler was asked to stop and runs were still going on at the time limit."""

    code = "shutdown_timeout"
    permanent = False

    def __init__(self, message: str, *, timed_out: bool, running_job_count: int) -> None:
        super().__init__(message)
        self.timed_out = timed_out
        self.running_job_count = running_job_count
