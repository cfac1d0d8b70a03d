"""The system duties of beat and the checks of doctor.

Belongs here: one file per duty or group of checks.
Does not belong here: rules of other packages; duties call their functions.
"""

from agents_app.maintenance import doctor
from agents_app.maintenance.beat_status import BeatStatus
from agents_app.maintenance.doctor import examine, examine_rows
from agents_app.maintenance.duties import DUTIES, POLL_WORK_SOURCES, RULES, DutyRunner
from agents_app.maintenance.findings import OK, WARNING, WRONG, Finding
from agents_app.maintenance.metrics import Histogram, ValueMetric, read_metrics
from agents_app.maintenance.retention import old_rows, remove_old_rows

__all__ = [
    "DUTIES",
    "OK",
    "POLL_WORK_SOURCES",
    "RULES",
    "WARNING",
    "WRONG",
    "BeatStatus",
    "DutyRunner",
    "Finding",
    "Histogram",
    "ValueMetric",
    "doctor",
    "examine",
    "examine_rows",
    "old_rows",
    "read_metrics",
    "remove_old_rows",
]
