"""Text to trigger to the instants at which it fires.

Belongs here: cron, intervals, phrases and clock changes; each function is given the time.
Does not belong here: rows of schedules (schedules).
"""

from agents_app.triggers.accepted import ACCEPTED
from agents_app.triggers.boot import BOOT_EXPRESSION, BootTrigger
from agents_app.triggers.clock_changes import Change, next_clock_change
from agents_app.triggers.cron import CronTrigger, parse_cron
from agents_app.triggers.cron_field import WEEKDAYS
from agents_app.triggers.describe import describe_cron, describe_interval
from agents_app.triggers.dst import GAPS, OVERLAP_HOURS, Gap, OverlapHour
from agents_app.triggers.duration import parse_duration
from agents_app.triggers.fires import (
    Trigger,
    fires_between,
    last_fire_between,
    next_fire,
    upcoming,
)
from agents_app.triggers.interval import (
    ANCHORS,
    Anchor,
    IntervalTrigger,
    calculate_next_trigger,
    is_schedule_due,
    parse_interval,
    parse_interval_trigger,
)
from agents_app.triggers.lateness import LATE, format_lateness
from agents_app.triggers.once import OnceTrigger
from agents_app.triggers.options import moment_of, past_moment_of, text_of, with_accepted
from agents_app.triggers.schedule_check import CheckedSchedule, ScheduleCheck, check_schedule
from agents_app.triggers.schedule_line import (
    ScheduleLine,
    ScheduleLineError,
    ScheduleLineFinder,
    find_schedule_lines,
    parse_schedule_line,
)
from agents_app.triggers.suggestion import suggest
from agents_app.triggers.untimed import UNTIMED_TYPES, UntimedTrigger, read_untimed
from agents_app.triggers.when import When, check_phrase, parse_trigger, parse_when
from agents_app.triggers.words import WHITESPACE, excerpt
from agents_app.triggers.zones import zone

__all__ = [
    "ACCEPTED",
    "ANCHORS",
    "BOOT_EXPRESSION",
    "GAPS",
    "LATE",
    "OVERLAP_HOURS",
    "UNTIMED_TYPES",
    "WEEKDAYS",
    "WHITESPACE",
    "Anchor",
    "BootTrigger",
    "Change",
    "CheckedSchedule",
    "CronTrigger",
    "Gap",
    "IntervalTrigger",
    "OnceTrigger",
    "OverlapHour",
    "ScheduleCheck",
    "ScheduleLine",
    "ScheduleLineError",
    "ScheduleLineFinder",
    "Trigger",
    "UntimedTrigger",
    "When",
    "calculate_next_trigger",
    "check_phrase",
    "check_schedule",
    "describe_cron",
    "describe_interval",
    "excerpt",
    "find_schedule_lines",
    "fires_between",
    "format_lateness",
    "is_schedule_due",
    "last_fire_between",
    "moment_of",
    "next_clock_change",
    "next_fire",
    "parse_cron",
    "parse_duration",
    "parse_interval",
    "parse_interval_trigger",
    "parse_schedule_line",
    "parse_trigger",
    "parse_when",
    "past_moment_of",
    "read_untimed",
    "suggest",
    "text_of",
    "upcoming",
    "with_accepted",
    "zone",
]
