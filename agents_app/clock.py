"""Times as text: in the time zone of the host for display, in UTC for programs."""

from datetime import UTC, datetime, tzinfo
from zoneinfo import ZoneInfo

import tzlocal

# Read before Django sets TZ in the environment.
HOST_ZONE = tzlocal.get_localzone_name() or "UTC"


def iso(moment: datetime) -> str:
    return moment.astimezone(UTC).isoformat().replace("+00:00", "Z")


def iso_milliseconds(moment: datetime) -> str:
    return moment.astimezone(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


def iso_local(moment: datetime | None, zone: tzinfo) -> str | None:
    return moment.astimezone(zone).isoformat() if moment else None


def local(moment: datetime, zone: tzinfo | None = None) -> str:
    return f"{moment.astimezone(zone or host_zone()):%Y-%m-%d %H:%M:%S %Z}"


def host_zone() -> tzinfo:
    return ZoneInfo(HOST_ZONE)
