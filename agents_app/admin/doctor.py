"""The doctor page: the findings of `manage.py doctor`, most severe first, with remedies.

The page loads the findings in a second request, because a check may wait for Redis or Docker.
"""

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from django.contrib import admin
from django.core.exceptions import PermissionDenied
from django.http import HttpRequest, HttpResponse
from django.shortcuts import render

from agents_app.admin.base import may_see, utc_now
from agents_app.conf import PROGRAM, TYPED_PROGRAM
from agents_app.maintenance import OK, WARNING, WRONG, Finding, examine, examine_rows

# How long the number in the sidebar is shown.
FRESH = timedelta(minutes=15)
# The tables that findings quote: pause notes, names of credentials, lines of rules.
_QUOTED = (
    *("worker", "scheduler", "tenant", "agent", "schedule", "workitem"),
    *("credential", "notifytarget", "rulestate", "worksource"),
)
_TITLES = {WRONG: "Problems", WARNING: "Warnings", OK: "Healthy"}
# In `manage.py rules test shows the line` the words after the command are no part of it.
_COMMAND = re.compile(
    rf"(?:python )?{re.escape(PROGRAM)} [a-z].*?(?= shows | lists |$)|docker pull \S+"
)


@dataclass(frozen=True, slots=True)
class Shown:
    finding: Finding
    command: str


@dataclass(frozen=True, slots=True)
class Group:
    verdict: str
    title: str
    findings: Sequence[Shown]


def page(request: HttpRequest) -> HttpResponse:
    _check_rights(request)
    context = {**admin.site.each_context(request), "title": "Doctor"}
    context["command"] = f"{TYPED_PROGRAM} doctor"
    return render(request, "drover/doctor.html", context)


def findings(request: HttpRequest) -> HttpResponse:
    """Runs all checks; the database invariants only with `?rows=1`."""
    _check_rights(request)
    now, rows = utc_now(), request.GET.get("rows") == "1"
    found = examine(utc_now)
    _LAST.keep(found, now)
    shown = found + examine_rows(now) if rows else found
    context: dict[str, Any] = {"groups": groups(shown), "now": now, "rows": rows}
    return render(request, "drover/doctor_findings.html", context)


def may_see_findings(request: HttpRequest) -> bool:
    """Only users who may see every quoted table: a partial report would look healthy."""
    return all(may_see(request, noun) for noun in _QUOTED)


def _check_rights(request: HttpRequest) -> None:
    if not may_see_findings(request):
        raise PermissionDenied


def groups(found: Iterable[Finding]) -> list[Group]:
    """Problems, warnings, healthy checks; empty groups are left out."""
    found = list(found)
    return [
        Group(verdict, title, [Shown(each, command_in(each.advice)) for each in mine])
        for verdict, title in _TITLES.items()
        if (mine := [each for each in found if each.verdict == verdict])
    ]


def command_in(advice: str) -> str:
    """The command in the advice, for the copy button."""
    found = _COMMAND.search(advice)
    return found[0] if found else ""


# --- the number in the sidebar --------------------------------------------------------------


@dataclass(slots=True)
class _LastCheck:
    """The number of problems of the last check in this process: a new check costs too much."""

    wrong: int = 0
    at: datetime | None = None

    def keep(self, found: Iterable[Finding], now: datetime) -> None:
        self.wrong, self.at = sum(each.verdict == WRONG for each in found), now

    def text(self, now: datetime) -> str:
        fresh = self.at is not None and now - self.at < FRESH
        return str(self.wrong) if fresh and self.wrong else ""


_LAST = _LastCheck()


def problem_count() -> str:
    return _LAST.text(utc_now())
