"""Formats times in the time zone of a schedule; pure."""

from dataclasses import dataclass
from datetime import UTC, datetime, tzinfo
from zoneinfo import ZoneInfo

from agents_app.triggers import zone


@dataclass(frozen=True, slots=True)
class Fire:
    at: datetime
    local: str
    utc: str
    remark: str = ""


def as_fire(at: datetime, place: ZoneInfo, remark: str = "") -> Fire:
    return Fire(at, _clock(at, place), _clock(at, UTC), remark)


def clock(moment: datetime | None, timezone: str) -> str:
    """The formatted time; empty for None."""
    return _clock(moment, zone(timezone)) if moment else ""


def _clock(moment: datetime, place: tzinfo) -> str:
    try:
        local = moment.astimezone(place)
    except OverflowError:  # the last day that a datetime can have, east of UTC
        local = moment
    seconds = ":%S" if local.second else ""
    return local.strftime(f"%a %d %b %Y %H:%M{seconds} %Z")
