"""What the tests of the formats share: a context, sources, and the fires of a schedule."""

from datetime import UTC, datetime, timedelta
from itertools import takewhile
from pathlib import Path

from agents_app.formats.imported import ImportContext, Imported, ImportedAgent, ImportedSchedule
from agents_app.formats.preview import parsed, policies
from agents_app.formats.report import ReportLine
from agents_app.triggers import fires_between

SOURCES = Path(__file__).parent / "sources"
NOW = datetime(2026, 11, 18, 9, 30, tzinfo=UTC)
CONTEXT = ImportContext(NOW, "Europe/Berlin", frozenset({"root", "www-data"}))
MONTH = timedelta(days=30)


def agents_by_name(found: Imported) -> dict[str, ImportedAgent]:
    return {agent.name: agent for agent in found.agents}


def lines_of(report: tuple[ReportLine, ...], field: str) -> list[int]:
    return [line.line for line in report if line.field == field]


def old_month(schedule: ImportedSchedule, start: datetime) -> list[datetime]:
    return list(takewhile(lambda fire: fire <= start + MONTH, schedule.old_fires(start)))


def new_month(schedule: ImportedSchedule, start: datetime) -> list[datetime]:
    when = parsed(schedule, start, CONTEXT.host_zone)
    return fires_between(
        when.trigger, start, start + MONTH, when.zone, 100_000, *policies(schedule)
    )
