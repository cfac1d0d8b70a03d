"""The rules: what became of each, what is wrong with their file, silence, one word about all."""

from dataclasses import replace
from datetime import datetime
from typing import Any
from zoneinfo import ZoneInfo

from django.contrib import admin
from django.core.exceptions import PermissionDenied
from django.http import Http404, HttpRequest, HttpResponse, HttpResponseNotAllowed
from django.shortcuts import redirect
from django.template.response import TemplateResponse
from django.urls import URLPattern, path, reverse
from django.utils.html import format_html
from django.utils.safestring import SafeString

from agents_app.admin.base import Act, RecordAdmin, Verb, utc_now
from agents_app.admin.schedule_verbs import one_moment
from agents_app.admin.show import exact, when
from agents_app.clock import HOST_ZONE
from agents_app.errors import Refused
from agents_app.models import DEFAULT_TENANT, RuleBook, RuleState, Tenant
from agents_app.rules.engine import (
    DryRunResult,
    RuleLine,
    book_of,
    dry_run_rules,
    end_silence,
    indicator,
    line_of,
    rule_lines,
    silence_text,
    start_silence,
    unread_file_notice,
)
from agents_app.rules.language import FILE_NAME

LIST = "admin:agents_app_rulestate_changelist"

# --- verbs ----------------------------------------------------------------------------------


def _silence(book: RuleBook, act: Act) -> str:
    until = one_moment(act.until, ZoneInfo(HOST_ZONE), act.now) if act.until else None
    start_silence(book.tenant, act.by, act.now, until)
    end = f"until {exact(until)}" if until else "until somebody ends it"
    return f"Rules send no messages {end}; all else they do"


def _end_silence(book: RuleBook, act: Act) -> str:
    if not end_silence(book.tenant, act.by, act.now):
        raise Refused("messages are sent already")
    return "Rules send messages again"


SILENCE = Verb(
    "silence",
    "Silence messages",
    "notifications_off",
    _silence,
    lambda book: not book.is_silent(utc_now()),
    asks_until="Until, e.g. in 2 hours",
)
END_SILENCE = Verb(
    "hear", "End silence", "notifications", _end_silence, lambda book: book.is_silent(utc_now())
)
OF_ALL = (SILENCE, END_SILENCE)


# --- pages ----------------------------------------------------------------------------------


class ShownRule:
    """A line of the table, and of the page of the rule."""

    def __init__(self, line: RuleLine, now: datetime) -> None:
        self.line, self.row = line, line.row
        self.url = reverse("admin:agents_app_rulestate_change", args=[line.row.pk])
        self.last, self.next = when(line.row.evaluated_at, now), when(line.row.next_due_at, now)

    @property
    def badge(self) -> SafeString:
        text = '<span class="dv-badge dv-rule-{}" title="{}">{}</span>'
        return format_html(text, self.row.status, self.row.reason, self.line.status)


@admin.register(RuleState)
class RuleStateAdmin(RecordAdmin):
    page_template = "drover/rule.html"
    fieldsets = [
        (None, {"fields": ["text", "line"]}),
        ("Record", {"fields": ["evaluated_at", "fired_at", "backoff_until", "failures"]}),
    ]

    def get_urls(self) -> list[URLPattern]:
        views = {"of-all/<slug:verb_name>/": self.act_on_all, "indicator/": self.indicator_view}
        names = ("agents_app_rulestate_of_all", "agents_app_rulestate_indicator")
        wrapped = [
            path(route, self.admin_site.admin_view(view), name=name)
            for (route, view), name in zip(views.items(), names, strict=True)
        ]
        return [*wrapped, *super().get_urls()]

    def changelist_view(
        self, request: HttpRequest, _extra_context: dict[str, Any] | None = None
    ) -> HttpResponse:
        """A table of our own: a file of rules is short, and people want it whole and in order."""
        if not self.has_view_or_change_permission(request):
            raise PermissionDenied
        now, tenant = utc_now(), _tenant()
        book, lines = book_of(tenant), rule_lines(tenant)
        context = {
            **self.admin_site.each_context(request),
            "title": "Rules",
            "opts": self.opts,
            "rules": [ShownRule(line, now) for line in lines],
            "unread": "" if lines else unread_file_notice(tenant, book),
            "book": book,
            "loaded": when(book.loaded_at, now),
            "silence": _silence_said(book, now) if book.is_silent(now) else "",
            "buttons": self._buttons_of_all(request, book),
            "file": FILE_NAME,
        }
        return TemplateResponse(request, "drover/rules.html", context)

    def page(self, _request: HttpRequest, row: RuleState) -> dict[str, Any]:
        now, line = utc_now(), line_of(row)
        return {"shown": ShownRule(line, now), "tried": _tried(row, line, now)}

    def indicator_view(self, request: HttpRequest) -> HttpResponse:
        """The word in the header alone, for pages that are open for long."""
        if not self.has_view_or_change_permission(request):
            raise PermissionDenied
        return HttpResponse(shown_indicator())

    def act_on_all(self, request: HttpRequest, verb_name: str) -> HttpResponse:
        if request.method != "POST":
            return HttpResponseNotAllowed(["POST"])
        if not self.has_act_permission(request):
            raise PermissionDenied
        verb = next((verb for verb in OF_ALL if verb.name == verb_name), None)
        if verb is None:
            raise Http404
        self.perform(request, verb, [book_of(_tenant())])
        return redirect(LIST)

    def _buttons_of_all(self, request: HttpRequest, book: RuleBook) -> list[tuple[Verb, str]]:
        if not self.has_act_permission(request) or book.tenant.pk is None:
            return []
        name = "admin:agents_app_rulestate_of_all"
        return [(verb, reverse(name, args=[verb.name])) for verb in OF_ALL if verb.fits(book)]


def _tenant() -> Tenant:
    """The project's own; before the first start there is none."""
    return Tenant.objects.filter(name=DEFAULT_TENANT).first() or Tenant(name=DEFAULT_TENANT)


def _silence_said(book: RuleBook, now: datetime) -> str:
    until = exact(book.silent_until) if book.silent_until else ""
    return silence_text(book, now, until)


def _tried(row: RuleState, line: RuleLine, now: datetime) -> DryRunResult | None:
    """What it would do at this moment; a name that nobody wrote is the row's."""
    if line.rule is None:
        return None
    (tried,) = dry_run_rules(row.tenant, [replace(line.rule, name=row.name)], now)
    return tried


# --- on every page --------------------------------------------------------------------------


def header_label(request: HttpRequest) -> tuple[SafeString, str] | None:
    """Unfold asks for it; nothing for those who may not see the rules."""
    seen = ("agents_app.view_rulestate", "agents_app.change_rulestate")
    if not any(request.user.has_perm(permission) for permission in seen):
        return None
    return shown_indicator(), ""


def shown_indicator() -> SafeString:
    shown = indicator(DEFAULT_TENANT)
    return format_html(
        '<a id="dv-sch" class="dv-sch dv-sch-{}" href="{}" title="{}" data-live="rule rules"'
        ' hx-get="{}" hx-select="#dv-sch" hx-trigger="live">{}</a>',
        *(shown.tone, reverse(LIST), shown.meaning),
        *(reverse("admin:agents_app_rulestate_indicator"), shown.text),
    )
