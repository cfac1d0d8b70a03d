"""`@reboot`: once after each boot of the host, when Drover starts."""

from dataclasses import dataclass

BOOT_EXPRESSION = "@reboot"


@dataclass(frozen=True, slots=True)
class BootTrigger:
    """Has no fires by the clock: the start of Drover after a boot makes the schedule due."""

    @property
    def expression(self) -> str:
        return BOOT_EXPRESSION


def read_boot(text: str) -> BootTrigger | None:
    """None for another text than `@reboot`."""
    return BootTrigger() if text.strip().lower() == BOOT_EXPRESSION else None
