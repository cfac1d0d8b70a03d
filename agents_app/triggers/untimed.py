"""Schedules of other systems that webhooks or chats start: kept, but never due by time."""

from dataclasses import dataclass

UNTIMED_TYPES = ("webhook", "chat")


@dataclass(frozen=True, slots=True)
class UntimedTrigger:
    """The trigger of a schedule with `type: webhook` or `type: chat`; it has no fires."""

    type: str

    @property
    def expression(self) -> str:
        return f"@{self.type}"

    @property
    def refusal(self) -> str:
        """Why the schedule does not fire; begins with the skip reason for programs."""
        return f"unsupported_type: a schedule of type {self.type} never fires by time"


def read_untimed(text: str) -> UntimedTrigger | None:
    """The trigger of the expression `@webhook` or `@chat`; None for another text."""
    name = text.strip().lower().removeprefix("@")
    known = name in UNTIMED_TYPES and text.strip().startswith("@")
    return UntimedTrigger(name) if known else None
