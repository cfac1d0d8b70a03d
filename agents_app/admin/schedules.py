"""Schedules: people make and edit their own; those of an agent's file are only paused here."""

from typing import Any
from zoneinfo import available_timezones

from django import forms
from django.contrib import admin
from django.core.exceptions import PermissionDenied
from django.db.models import F
from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.urls import URLPattern, path
from django.utils.html import format_html
from django.utils.safestring import SafeString

from agents_app import control, journal
from agents_app.admin.base import Act, DroverAdmin, Verb, utc_now
from agents_app.admin.lines import ScheduleLine
from agents_app.admin.next_fires import preview
from agents_app.admin.show import when
from agents_app.commit import in_transaction
from agents_app.conf import HOST_ZONE
from agents_app.errors import DroverError, Refused
from agents_app.models import Schedule
from agents_app.skills.sync import arm
from agents_app.triggers import parse_trigger, zone

RECENT_FIRINGS = 10
MOST_TEXT = 200
# Longer spans than a year mean nothing here, and very long ones are no timedelta.
LONGEST_WINDOW_SECONDS = 366 * 86_400
EDITABLE_STATES = {Schedule.State.ACTIVE, Schedule.State.PAUSED}


# --- verbs ----------------------------------------------------------------------------------


def _pause(schedule: Schedule, act: Act) -> str:
    if not control.pause_schedule(schedule, act.by, act.now, act.note):
        raise Refused("only an active schedule can be paused")
    return f"{schedule} is paused"


def _resume(schedule: Schedule, act: Act) -> str:
    if not control.resume_schedule(schedule, act.by, act.now):
        raise Refused("only a paused schedule can be resumed")
    return f"{schedule} goes on with its next fire"


PAUSE = Verb(
    "pause", "Pause", "pause", _pause, lambda s: s.state == "active", asks="Why (optional)"
)
RESUME = Verb("resume", "Resume", "resume", _resume, lambda s: s.state == "paused")


# --- pages ----------------------------------------------------------------------------------


class ScheduleForm(forms.ModelForm):  # type: ignore[type-arg]
    def clean_expression(self) -> str:
        text: str = self.cleaned_data["expression"].strip()
        try:
            parse_trigger(text)
        except DroverError as error:
            raise forms.ValidationError(str(error)) from None
        return text

    def clean_timezone(self) -> str:
        name: str = self.cleaned_data["timezone"].strip()
        try:
            zone(name)
        except DroverError as error:
            raise forms.ValidationError(str(error)) from None
        return name


@admin.register(Schedule)
class ScheduleAdmin(DroverAdmin):
    verbs = (PAUSE, RESUME)
    page_template = "drover/schedule.html"
    form = ScheduleForm
    list_display = ["name", "agent", "state_badge", "expression", "timezone", "next_fire", "fired"]
    list_filter = ["state", "source", "overlap", "agent"]
    list_select_related = ["agent"]
    search_fields = ["name", "agent__name", "expression"]
    ordering = ["agent__name", "name"]
    autocomplete_fields = ["agent"]
    identity = ["agent", "name"]
    trigger = ["expression", "timezone"]
    policies = ["prompt", "overlap", "catch_up", "catch_up_window_seconds"]
    record = [
        *("state", "pause_note", "source", "next_fire_at", "last_fire_at", "last_completed_at"),
        *("fire_count", "missed_count", "created_at", "updated_at"),
    ]
    readonly_fields = record
    add_fieldsets = [
        ("When", {"fields": [*identity, *trigger]}),
        ("What and how", {"fields": policies}),
    ]
    fieldsets = [*add_fieldsets, ("Record", {"fields": record})]

    def has_change_permission(self, request: HttpRequest, schedule: Schedule | None = None) -> bool:
        """A schedule of a file is changed in the file."""
        fixed = schedule is not None and (
            schedule.source == Schedule.Source.FILE or schedule.state not in EDITABLE_STATES
        )
        return not fixed and super().has_change_permission(request, schedule)

    def get_readonly_fields(self, _request: HttpRequest, schedule: Any = None) -> list[str]:
        return self.record + (self.identity if schedule else [])

    def get_changeform_initial_data(self, request: HttpRequest) -> dict[str, Any]:
        return {"timezone": HOST_ZONE, **super().get_changeform_initial_data(request)}

    def formfield_for_dbfield(self, column: Any, request: HttpRequest, **kwargs: Any) -> Any:
        if column.name == "catch_up_window_seconds":
            kwargs |= {"min_value": 0, "max_value": LONGEST_WINDOW_SECONDS}
        field = super().formfield_for_dbfield(column, request, **kwargs)
        if column.name == "timezone":
            field.widget.attrs |= {"list": "dv-zones", "autocomplete": "off"}
        return field

    def save_model(self, request: HttpRequest, schedule: Schedule, form: Any, change: bool) -> None:
        """Only what was edited is written: beat counts in the same row meanwhile."""
        now, by = utc_now(), request.user.get_username()
        columns = set(form.changed_data)
        if not change or columns & set(self.trigger):
            arm(schedule, now)
            columns |= {"next_fire_at", "interval_seconds"}
        schedule.tenant_id = schedule.agent.tenant_id

        def write() -> None:
            schedule.save(update_fields=[*columns, "updated_at"] if change else None)
            name = "schedule.edited" if change else "schedule.created"
            detail = f"{schedule.name}: {by}"
            ids = (schedule.tenant_id, schedule.agent_id)
            journal.record(journal.Entry(name, now, *ids, detail=detail))

        in_transaction(write)

    def get_urls(self) -> list[URLPattern]:
        view = self.admin_site.admin_view(self.preview_view)
        return [path("preview/", view, name="agents_app_schedule_preview"), *super().get_urls()]

    def preview_view(self, request: HttpRequest) -> HttpResponse:
        """What the form asks for while somebody types."""
        if not (self.has_add_permission(request) or self.has_view_permission(request)):
            raise PermissionDenied
        expression = request.GET.get("expression", "")[:MOST_TEXT]
        timezone = request.GET.get("timezone", "")[:MOST_TEXT]
        shown = preview(expression, timezone, None, utc_now())
        return render(request, "drover/next_fires.html", {"preview": shown})

    def page(self, request: HttpRequest, schedule: Schedule | None) -> dict[str, Any]:
        now = utc_now()
        if schedule is None:
            return {"typing": True, "zones": sorted(available_timezones())}
        armed = schedule.next_fire_at if schedule.state == Schedule.State.ACTIVE else None
        return {
            "typing": self.has_change_permission(request, schedule),
            "zones": sorted(available_timezones()),
            "line": ScheduleLine(schedule, now),
            "preview": preview(schedule.expression, schedule.timezone, armed, now),
            "firings": schedule.firings.order_by("-due_at")[:RECENT_FIRINGS],
        }

    @admin.display(description="State", ordering="state")
    def state_badge(self, schedule: Schedule) -> SafeString:
        return ScheduleLine(schedule, utc_now()).badge

    @admin.display(ordering=F("next_fire_at").asc(nulls_last=True))
    def next_fire(self, schedule: Schedule) -> SafeString:
        return ScheduleLine(schedule, utc_now()).next_fire

    @admin.display(ordering="fire_count")
    def fired(self, schedule: Schedule) -> SafeString:
        last = when(schedule.last_fire_at, utc_now())
        return format_html("{} <span class='dv-nothing'>·</span> {}", schedule.fire_count, last)
