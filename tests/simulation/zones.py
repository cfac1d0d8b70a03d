"""The time zones of simulated schedules, and fortnights with unusual clock changes."""

from datetime import UTC, datetime
from zoneinfo import ZoneInfo

YEAR_START = datetime(2026, 1, 1, 0, 0, 17, tzinfo=UTC)
YEAR_END = datetime(2027, 1, 1, tzinfo=UTC)
ZONES = tuple(
    ZoneInfo(name)
    for name in (
        "UTC",
        "Africa/Cairo",  # forward at midnight, back at midnight
        "Africa/Casablanca",  # an hour back for Ramadan
        "America/Havana",
        "America/New_York",
        "America/Nuuk",
        "America/Santiago",
        "America/Sao_Paulo",
        "America/St_Johns",
        "Antarctica/Troll",  # by two hours
        "Asia/Beirut",
        "Asia/Kathmandu",
        "Asia/Kolkata",
        "Atlantic/Azores",
        "Australia/Lord_Howe",  # by half an hour
        "Europe/Berlin",
        "Europe/London",
        "Pacific/Apia",
        "Pacific/Chatham",
        "Pacific/Kiritimati",
    )
)
# The day in the middle of the fortnight, and the zone.
FORTNIGHTS = (
    ("1972-01-07", "Africa/Monrovia"),  # 44 minutes and 30 seconds were skipped
    ("1993-08-21", "Pacific/Kwajalein"),  # a day was skipped
    ("1994-05-01", "Asia/Tokyo"),  # no change
    ("2005-03-27", "Europe/Tallinn"),
    ("2007-12-09", "America/Caracas"),  # half an hour was repeated
    ("2011-12-30", "Pacific/Apia"),  # a day was skipped
    ("2015-08-15", "Asia/Pyongyang"),
    ("2017-10-29", "Asia/Famagusta"),
    ("2018-05-05", "Asia/Pyongyang"),
    ("2019-03-30", "Asia/Gaza"),
    ("2026-10-29", "Africa/Cairo"),
)
