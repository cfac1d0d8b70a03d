"""The doctor's page: what `manage.py doctor` finds, the gravest first, with what to do.

The page itself looks at nothing: the checks may wait for a Redis or an engine that does not answer,
so what they find arrives after it.
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
from agents_app.maintenance import OK, WARNING, WRONG, Finding, examine, examine_rows

# For so long the number in the sidebar is worth showing.
FRESH = timedelta(minutes=15)
# The tables whose rows the findings quote: notes of pauses, names of credentials, lines of rules.
_QUOTED = (
    *("worker", "scheduler", "tenant", "agent", "schedule", "workitem"),
    *("credential", "notifytarget", "rulestate"),
)
_TITLES = {WRONG: "Wrong", WARNING: "Worth a look", OK: "As it should be"}
_COMMAND = re.compile(r"(?:python )?manage\.py [a-z].*|docker pull \S+")


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
    return render(request, "drover/doctor.html", context)


def findings(request: HttpRequest) -> HttpResponse:
    """Everything that is found; the rows are searched only when somebody asks for that."""
    _check_rights(request)
    now, rows = utc_now(), request.GET.get("rows") == "1"
    found = examine(now)
    _LAST.keep(found, now)
    shown = found + examine_rows(now) if rows else found
    context: dict[str, Any] = {"groups": groups(shown), "now": now, "rows": rows}
    return render(request, "drover/doctor_findings.html", context)


def may_ask(request: HttpRequest) -> bool:
    """All or nothing: a doctor who keeps something back would say that all is well."""
    return all(may_see(request, noun) for noun in _QUOTED)


def _check_rights(request: HttpRequest) -> None:
    if not may_ask(request):
        raise PermissionDenied


def groups(found: Iterable[Finding]) -> list[Group]:
    """The gravest first; a group without findings is left out."""
    found = list(found)
    return [
        Group(verdict, title, [Shown(each, command_in(each.advice)) for each in mine])
        for verdict, title in _TITLES.items()
        if (mine := [each for each in found if each.verdict == verdict])
    ]


def command_in(advice: str) -> str:
    """What can be copied of it."""
    found = _COMMAND.search(advice)
    return found[0] if found else ""


# --- the number in the sidebar --------------------------------------------------------------


@dataclass(slots=True)
class _Last:
    """What was last found by anybody whom this process served: asking again would cost too much."""

    wrong: int = 0
    at: datetime | None = None

    def keep(self, found: Iterable[Finding], now: datetime) -> None:
        self.wrong, self.at = sum(each.verdict == WRONG for each in found), now

    def text(self, now: datetime) -> str:
        fresh = self.at is not None and now - self.at < FRESH
        return str(self.wrong) if fresh and self.wrong else ""


_LAST = _Last()


def wrong_lately() -> str:
    return _LAST.text(utc_now())
