"""The errors of Drover: a message for users, and a code and HTTP status for programs."""

from collections.abc import Mapping
from typing import Any, ClassVar


class DroverError(Exception):
    """Base class; the message says what is wrong, where, and what to do."""

    code: ClassVar[str] = "error"
    http_status: ClassVar[int] = 400
    # A permanent error would occur again; only other errors are retried.
    permanent: ClassVar[bool] = True


class ConfigError(DroverError):
    """A setting in the environment or in a file cannot be used."""

    code = "bad_config"
    http_status = 500


class NotFound(DroverError):
    """The object does not exist, or belongs to another tenant."""

    code = "not_found"
    http_status = 404


class Refused(DroverError):
    """The state of the object does not allow the operation."""

    code = "refused"
    http_status = 409


class TriggerParseError(DroverError):
    """A text is not a valid trigger; `accepted` lists the valid forms, one per line.

    `position` is the index of the first invalid character.
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
    """Base of the errors for Python code that uses Drover as a library."""

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
    """Runs were unfinished at the time limit of a shutdown."""

    code = "shutdown_timeout"
    permanent = False

    def __init__(self, message: str, *, timed_out: bool, running_job_count: int) -> None:
        super().__init__(message)
        self.timed_out = timed_out
        self.running_job_count = running_job_count
