"""Schedules: people make and edit their own; those of an agent's file are only paused here."""

from datetime import datetime
from typing import Any
from zoneinfo import available_timezones

from django.contrib import admin
from django.core.exceptions import PermissionDenied
from django.db.models import F, QuerySet
from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.urls import URLPattern, path
from django.utils.html import format_html
from django.utils.safestring import SafeString

from agents_app.admin.base import DroverAdmin, utc_now
from agents_app.admin.schedule_form import BOUNDS, ScheduleForm
from agents_app.admin.schedule_lines import ScheduleLine, with_last_outcome
from agents_app.admin.schedule_verbs import VERBS, of_a_file
from agents_app.conf import HOST_ZONE
from agents_app.models import Schedule
from agents_app.next_fires import Preview, preview
from agents_app.why import explain

RECENT_FIRINGS = 10
MOST_TEXT = 200
EDITABLE_STATES = {Schedule.State.ACTIVE, Schedule.State.PAUSED}


@admin.register(Schedule)
class ScheduleAdmin(DroverAdmin):
    verbs = VERBS
    page_template = "drover/schedule.html"
    form = ScheduleForm
    list_display = ["name", "agent", "said", "next_fire", "shown_state", "last_outcome"]
    list_filter = ["state", "source", "one_shot", "agent"]
    list_select_related = ["agent"]
    search_fields = ["name", "agent__name", "text", "expression"]
    ordering = ["agent__name", "name"]
    autocomplete_fields = ["agent"]
    identity = ["agent", "name"]
    trigger = ["text", "timezone", "anchor", "gap", "overlap_hour"]
    work = ["prompt", "overlap", "pause_after_failures"]
    punctuality = ["catch_up", "catch_up_window_seconds", "jitter_percent", "jitter_seconds"]
    record = [
        *("expression", "one_shot", "state", "pause_note", "pause_until", "source"),
        *("next_fire_at", "last_fire_at", "last_completed_at", "created_at", "updated_at"),
    ]
    readonly_fields = record
    add_fieldsets = [
        ("When", {"fields": [*identity, *trigger]}),
        ("What and how", {"fields": work}),
        ("Late or early", {"fields": punctuality}),
    ]
    fieldsets = [*add_fieldsets, ("Record", {"fields": record, "classes": ["collapse"]})]

    # --- who may change what ----------------------------------------------------------------

    def has_change_permission(self, request: HttpRequest, schedule: Schedule | None = None) -> bool:
        """A schedule of a file is changed in the file."""
        fixed = schedule is not None and (
            of_a_file(schedule) or schedule.state not in EDITABLE_STATES
        )
        return not fixed and super().has_change_permission(request, schedule)

    def get_readonly_fields(self, _request: HttpRequest, schedule: Any = None) -> list[str]:
        return self.record + (self.identity if schedule else [])

    def get_queryset(self, request: HttpRequest) -> QuerySet[Schedule]:
        return with_last_outcome(super().get_queryset(request))

    # --- the form ---------------------------------------------------------------------------

    def get_changeform_initial_data(self, request: HttpRequest) -> dict[str, Any]:
        return {"timezone": HOST_ZONE, **super().get_changeform_initial_data(request)}

    def formfield_for_dbfield(self, column: Any, request: HttpRequest, **kwargs: Any) -> Any:
        if column.name in BOUNDS:
            least, most = BOUNDS[column.name]
            kwargs |= {"min_value": least, "max_value": most}
        field = super().formfield_for_dbfield(column, request, **kwargs)
        if column.name == "timezone":
            field.widget.attrs |= {"list": "dv-zones", "autocomplete": "off"}
        return field

    def save_model(
        self, request: HttpRequest, schedule: Schedule, form: Any, _change: bool
    ) -> None:
        schedule.pk = form.write(request.user.get_username(), utc_now()).pk
        schedule.refresh_from_db()

    def get_urls(self) -> list[URLPattern]:
        view = self.admin_site.admin_view(self.preview_view)
        return [path("preview/", view, name="agents_app_schedule_preview"), *super().get_urls()]

    def preview_view(self, request: HttpRequest) -> HttpResponse:
        """What the form asks for while somebody types."""
        if not (self.has_add_permission(request) or self.has_view_permission(request)):
            raise PermissionDenied
        typed = {name: request.GET.get(name, "")[:MOST_TEXT] for name in self.trigger}
        shown = {"preview": _of_typed(typed, utc_now()), "zone": typed["timezone"].strip()}
        return render(request, "drover/next_fires.html", shown)

    # --- pages ------------------------------------------------------------------------------

    def page(self, request: HttpRequest, schedule: Schedule | None) -> dict[str, Any]:
        typing = {"zones": sorted(available_timezones()), "trigger": self.trigger}
        if schedule is None:
            return {"typing": True, **typing}
        now = utc_now()
        return {
            "typing": self.has_change_permission(request, schedule),
            **typing,
            "line": ScheduleLine(schedule, now),
            "preview": _of_saved(schedule, now),
            "zone": schedule.timezone,
            "why": explain(schedule, now, RECENT_FIRINGS),
        }

    @admin.display(description="When", ordering="text")
    def said(self, schedule: Schedule) -> SafeString:
        text, zone = ScheduleLine(schedule, utc_now()).text, schedule.timezone
        return format_html('{}<span class="dv-below">{}</span>', text, zone)

    @admin.display(ordering=F("next_fire_at").asc(nulls_last=True))
    def next_fire(self, schedule: Schedule) -> SafeString:
        return ScheduleLine(schedule, utc_now()).next_fire

    @admin.display(description="State", ordering="state")
    def shown_state(self, schedule: Schedule) -> SafeString:
        return ScheduleLine(schedule, utc_now()).badge

    def last_outcome(self, schedule: Schedule) -> SafeString:
        return ScheduleLine(schedule, utc_now()).outcome


# --- next fires -----------------------------------------------------------------------------


def _of_typed(typed: dict[str, str], now: datetime) -> Preview:
    return preview(
        typed["text"],
        typed["timezone"],
        now,
        gap=_known(typed["gap"], Schedule.Gap.values),
        overlap_hour=_known(typed["overlap_hour"], Schedule.OverlapHour.values),
        anchor=_known(typed["anchor"], ["", *Schedule.Anchor.values]),
    )


def _known(value: str, values: list[str]) -> str:
    """The first one is the usual one."""
    return value if value in values else values[0]


def _of_saved(schedule: Schedule, now: datetime) -> Preview:
    """By what its text meant when it was saved: "in 30 minutes" means another time by now."""
    armed = _armed(schedule, now)
    if schedule.state not in EDITABLE_STATES or (schedule.one_shot and armed is None):
        return Preview()
    return preview(
        schedule.expression,
        schedule.timezone,
        now,
        gap=schedule.gap,
        overlap_hour=schedule.overlap_hour,
        anchor=schedule.anchor,
        armed=armed,
    )


def _armed(schedule: Schedule, now: datetime) -> datetime | None:
    if schedule.state == Schedule.State.ACTIVE:
        return schedule.next_fire_at
    # A one-shot whose time came meanwhile is due as soon as it is resumed.
    overdue = schedule.next_fire_at if schedule.one_shot else None
    return max(now, overdue) if overdue else None
