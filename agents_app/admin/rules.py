"""Pages of rules: state of each rule, errors of the file, silence, and the indicator."""

from dataclasses import replace
from datetime import datetime
from typing import Any
from urllib.parse import urlencode
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
from agents_app.admin.formatting import exact, when
from agents_app.admin.schedule_verbs import parse_moment
from agents_app.clock import HOST_ZONE
from agents_app.conf import PROGRAM
from agents_app.errors import Refused
from agents_app.models import DEFAULT_TENANT, RuleBook, RuleState, Tenant
from agents_app.rules.engine import (
    DryRunResult,
    RuleLine,
    book_of,
    dry_run_rules,
    end_silence,
    file_label,
    indicator,
    line_of,
    rule_lines,
    silence_text,
    start_silence,
    unread_file_notice,
)

LIST = "admin:agents_app_rulestate_changelist"

# --- verbs ----------------------------------------------------------------------------------


def _silence(book: RuleBook, act: Act) -> str:
    until = parse_moment(act.until, ZoneInfo(HOST_ZONE), act.now) if act.until else None
    start_silence(book.tenant, act.by, act.now, until)
    end = f"until {exact(until)}" if until else "until the silence is ended"
    return f"Messages of rules silenced {end}; other actions are still performed"


def _end_silence(book: RuleBook, act: Act) -> str:
    if not end_silence(book.tenant, act.by, act.now):
        raise Refused("messages are not silenced")
    return "Messages of rules are sent again"


SILENCE = Verb(
    "silence",
    "Silence messages",
    "notifications_off",
    _silence,
    lambda book: not book.is_silent(utc_now()),
    asks_until="Until, e.g. in 2 hours",
)
END_SILENCE = Verb(
    "end_silence",
    "End silence",
    "notifications",
    _end_silence,
    lambda book: book.is_silent(utc_now()),
)
FILE_VERBS = (SILENCE, END_SILENCE)


# --- pages ----------------------------------------------------------------------------------


class ShownRule:
    """A rule as the list and its own page show it."""

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
        views = {"file/<slug:verb_name>/": self.act_on_file, "indicator/": self.indicator_view}
        names = ("agents_app_rulestate_file_act", "agents_app_rulestate_indicator")
        wrapped = [
            path(route, self.admin_site.admin_view(view), name=name)
            for (route, view), name in zip(views.items(), names, strict=True)
        ]
        return [*wrapped, *super().get_urls()]

    def changelist_view(
        self, request: HttpRequest, _extra_context: dict[str, Any] | None = None
    ) -> HttpResponse:
        """Shows all rules in the order of the file, without pages and filters."""
        if not self.has_view_or_change_permission(request):
            raise PermissionDenied
        now, tenant = utc_now(), _chosen_tenant(request)
        book, lines = book_of(tenant), rule_lines(tenant)
        context = {
            **self.admin_site.each_context(request),
            "title": "Rules",
            "opts": self.opts,
            "rules": [ShownRule(line, now) for line in lines],
            "unread": "" if lines else unread_file_notice(tenant, book),
            "book": book,
            "loaded": when(book.loaded_at, now),
            "silence": _silence_text(book, now) if book.is_silent(now) else "",
            "buttons": self._file_buttons(request, book),
            "file": file_label(tenant),
            "test_command": f"{PROGRAM} rules test",
            "tenant": tenant,
            "tenants": _tenant_links(tenant),
            "here": _list_url(tenant),
        }
        return TemplateResponse(request, "drover/rules.html", context)

    def page(self, _request: HttpRequest, row: RuleState) -> dict[str, Any]:
        now, line = utc_now(), line_of(row)
        return {"shown": ShownRule(line, now), "dry_run": _dry_run(row, line, now)}

    def indicator_view(self, request: HttpRequest) -> HttpResponse:
        """The indicator alone, for the live update of the header."""
        if not self.has_view_or_change_permission(request):
            raise PermissionDenied
        return HttpResponse(shown_indicator())

    def act_on_file(self, request: HttpRequest, verb_name: str) -> HttpResponse:
        if request.method != "POST":
            return HttpResponseNotAllowed(["POST"])
        if not self.has_act_permission(request):
            raise PermissionDenied
        verb = next((verb for verb in FILE_VERBS if verb.name == verb_name), None)
        if verb is None:
            raise Http404
        tenant = _chosen_tenant(request)
        self.perform(request, verb, [book_of(tenant)])
        return redirect(_list_url(tenant))

    def _file_buttons(self, request: HttpRequest, book: RuleBook) -> list[tuple[Verb, str]]:
        if not self.has_act_permission(request) or book.tenant.pk is None:
            return []
        name, of = "admin:agents_app_rulestate_file_act", _query(book.tenant)
        return [
            (verb, f"{reverse(name, args=[verb.name])}{of}")
            for verb in FILE_VERBS
            if verb.fits(book)
        ]


def _chosen_tenant(request: HttpRequest) -> Tenant:
    """The tenant in the address, or the default one, which is unsaved before the first start."""
    name = request.GET.get("tenant", DEFAULT_TENANT)
    found = Tenant.objects.filter(name=name).first() if "\0" not in name else None
    if found is None and name != DEFAULT_TENANT:
        raise Http404
    return found or Tenant(name=DEFAULT_TENANT)


def _query(tenant: Tenant) -> str:
    return "" if tenant.name == DEFAULT_TENANT else f"?{urlencode({'tenant': tenant.name})}"


def _list_url(tenant: Tenant) -> str:
    return f"{reverse(LIST)}{_query(tenant)}"


def _tenant_links(chosen: Tenant) -> list[tuple[str, str, bool]]:
    """Name, address and whether it is the chosen one, for each tenant; empty for a single one."""
    found = list(Tenant.objects.order_by("name"))
    links = [(tenant.name, _list_url(tenant), tenant.pk == chosen.pk) for tenant in found]
    return links if len(links) > 1 else []


def _silence_text(book: RuleBook, now: datetime) -> str:
    until = exact(book.silent_until) if book.silent_until else ""
    return silence_text(book, now, until)


def _dry_run(row: RuleState, line: RuleLine, now: datetime) -> DryRunResult | None:
    """What the rule would do now; a rule without a name has the generated name of its row."""
    if line.rule is None:
        return None
    (result,) = dry_run_rules(row.tenant, [replace(line.rule, name=row.name)], now)
    return result


# --- on every page --------------------------------------------------------------------------


def header_label(request: HttpRequest) -> tuple[SafeString, str] | None:
    """The indicator, for users who may see rules; called by Unfold for each page."""
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
