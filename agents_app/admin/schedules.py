"""Pages of schedules: form, preview, calendar; schedules of a SKILL.md can only be paused."""

from datetime import datetime
from typing import Any
from zoneinfo import available_timezones

from django.contrib import admin
from django.core.exceptions import PermissionDenied
from django.db.models import F, QuerySet
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import render
from django.template.response import TemplateResponse
from django.urls import URLPattern, path
from django.utils.html import format_html
from django.utils.safestring import SafeString
from unfold.decorators import action

from agents_app.admin.base import DroverAdmin, utc_now
from agents_app.admin.calendar import calendar_of
from agents_app.admin.filters import AGENT, ProjectFilter
from agents_app.admin.schedule_form import BOUNDS, TRIGGER, ScheduleForm, WhenInput
from agents_app.admin.schedule_verbs import VERBS
from agents_app.admin.summaries import ScheduleSummary, with_last_outcome
from agents_app.clock import HOST_ZONE
from agents_app.errors import DroverError
from agents_app.models import Schedule
from agents_app.schedules import edit
from agents_app.schedules.why import explain, explain_past
from agents_app.triggers import past_moment_of, zone
from agents_app.triggers.preview import Preview, preview_fires

RECENT_FIRINGS = 10
MOST_TEXT = 200
EDITABLE_STATES = {Schedule.State.ACTIVE, Schedule.State.PAUSED}


class ScheduleProjectFilter(ProjectFilter):
    """A link to the schedules of one agent shows them also if its project is an earlier one."""

    agent_field = "agent"

    def queryset(self, request: HttpRequest, queryset: QuerySet[Any]) -> QuerySet[Any]:
        of_one_agent = any(name.startswith("agent") for name in request.GET)
        return queryset if of_one_agent else super().queryset(request, queryset)


@admin.register(Schedule)
class ScheduleAdmin(DroverAdmin):
    verbs = VERBS
    page_template = "drover/schedule.html"
    form = ScheduleForm
    list_display = ["name", "agent", "trigger_text", "next_fire", "shown_state", "last_outcome"]
    list_filter = ["state", "source", "one_shot", ScheduleProjectFilter, AGENT]
    list_select_related = ["agent"]
    search_fields = ["name", "agent__name", "text", "expression"]
    ordering = ["agent__name", "name"]
    autocomplete_fields = ["agent"]
    actions_list = ["calendar"]
    trigger = ["agent", "text", "timezone", "name", "anchor", "gap", "overlap_hour"]
    work = ["prompt", "overlap", "pause_after_failures"]
    punctuality = ["catch_up", "catch_up_window_seconds", "jitter_percent", "jitter_seconds"]
    record = [
        *("expression", "one_shot", "state", "pause_note", "pause_until", "source"),
        *("next_fire_at", "last_fire_at", "last_completed_at", "created_at", "updated_at"),
        *("run_count", "last_error"),
    ]
    readonly_fields = record
    add_fieldsets = [
        ("When", {"fields": trigger}),
        ("Work", {"fields": work}),
        ("Downtime and jitter", {"fields": punctuality}),
    ]
    fieldsets = [*add_fieldsets, ("Record", {"fields": record, "classes": ["collapse"]})]

    class Media:
        css = {"all": ["drover/schedule.css"]}
        js = ["drover/when.js"]

    # --- permissions -----------------------------------------------------------------------

    def has_change_permission(self, request: HttpRequest, schedule: Schedule | None = None) -> bool:
        """A schedule from a SKILL.md is changed in the file."""
        fixed = schedule is not None and (
            edit.is_defined_in_file(schedule) or schedule.state not in EDITABLE_STATES
        )
        return not fixed and super().has_change_permission(request, schedule)

    def get_readonly_fields(self, _request: HttpRequest, schedule: Any = None) -> list[str]:
        return self.record + (["agent"] if schedule else [])

    def get_queryset(self, request: HttpRequest) -> QuerySet[Schedule]:
        return with_last_outcome(super().get_queryset(request))

    # --- the form ---------------------------------------------------------------------------

    def get_changeform_initial_data(self, request: HttpRequest) -> dict[str, Any]:
        return {"timezone": HOST_ZONE, **super().get_changeform_initial_data(request)}

    def formfield_for_dbfield(self, column: Any, request: HttpRequest, **kwargs: Any) -> Any:
        if column.name in BOUNDS:
            least, most = BOUNDS[column.name]
            kwargs |= {"min_value": least, "max_value": most}
        if column.name == "text":
            kwargs["widget"] = WhenInput
        field = super().formfield_for_dbfield(column, request, **kwargs)
        if column.name == "timezone":
            field.widget.attrs |= {"list": "dv-zones", "autocomplete": "off"}
        return field

    def save_model(
        self, request: HttpRequest, schedule: Schedule, form: Any, _change: bool
    ) -> None:
        schedule.pk = form.write(request.user.get_username(), utc_now()).pk
        schedule.refresh_from_db()

    # --- partial views ----------------------------------------------------------------------

    def get_urls(self) -> list[URLPattern]:
        view = self.admin_site.admin_view
        return [
            path("preview/", view(self.preview_view), name="agents_app_schedule_preview"),
            path("<int:key>/why/", view(self.why_at_view), name="agents_app_schedule_why"),
            *super().get_urls(),
        ]

    def preview_view(self, request: HttpRequest) -> HttpResponse:
        """The preview of the form, reloaded on input."""
        if not (self.has_add_permission(request) or self.has_view_permission(request)):
            raise PermissionDenied
        typed = {name: request.GET.get(name, "")[:MOST_TEXT] for name in TRIGGER}
        shown = {"preview": _of_typed(typed, utc_now()), "zone": typed["timezone"].strip()}
        return render(request, "drover/next_fires.html", shown)

    def why_at_view(self, request: HttpRequest, key: int) -> HttpResponse:
        """Why the schedule did not run at the entered time."""
        if not self.has_view_permission(request):
            raise PermissionDenied
        schedule = self.get_object(request, str(key))
        if schedule is None:
            raise Http404
        context = _why_at(schedule, request.GET.get("at", "").strip()[:MOST_TEXT], utc_now())
        return render(request, "drover/why_at.html", context)

    @action(  # type: ignore[untyped-decorator]
        description="Calendar", url_path="calendar", permissions=["view"], icon="calendar_month"
    )
    def calendar(self, request: HttpRequest) -> HttpResponse:
        site = {**self.admin_site.each_context(request), "title": "Calendar"}
        return TemplateResponse(
            request, "drover/calendar.html", site | calendar_of(request, utc_now())
        )

    # --- pages ------------------------------------------------------------------------------

    def page(self, request: HttpRequest, schedule: Schedule | None) -> dict[str, Any]:
        may_edit = schedule is None or self.has_change_permission(request, schedule)
        context = {"zones": sorted(available_timezones()) if may_edit else []}
        if schedule is None:
            return context
        now = utc_now()
        return context | {
            "summary": ScheduleSummary(schedule, now),
            "preview": _of_saved(schedule, now),
            "zone": schedule.timezone,
            "why": explain(schedule, now, RECENT_FIRINGS),
        }

    @admin.display(description="When", ordering="text")
    def trigger_text(self, schedule: Schedule) -> SafeString:
        text, zone = ScheduleSummary(schedule, utc_now()).text, schedule.timezone
        return format_html('{}<span class="dv-below">{}</span>', text, zone)

    @admin.display(ordering=F("next_fire_at").asc(nulls_last=True))
    def next_fire(self, schedule: Schedule) -> SafeString:
        return ScheduleSummary(schedule, utc_now()).next_fire

    @admin.display(description="State", ordering="state")
    def shown_state(self, schedule: Schedule) -> SafeString:
        return ScheduleSummary(schedule, utc_now()).badge

    def last_outcome(self, schedule: Schedule) -> SafeString:
        return ScheduleSummary(schedule, utc_now()).outcome


# --- next fires -----------------------------------------------------------------------------


def _of_typed(typed: dict[str, str], now: datetime) -> Preview:
    return preview_fires(
        typed["text"],
        typed["timezone"],
        now,
        gap=_known(typed["gap"], Schedule.Gap.values),
        overlap_hour=_known(typed["overlap_hour"], Schedule.OverlapHour.values),
        anchor=_known(typed["anchor"], ["", *Schedule.Anchor.values]),
    )


def _known(value: str, values: list[str]) -> str:
    """The value, or the default, which is the first."""
    return value if value in values else values[0]


def _of_saved(schedule: Schedule, now: datetime) -> Preview:
    """Uses the saved expression: a text such as "in 30 minutes" is relative to its entry."""
    armed = _armed(schedule, now)
    if schedule.state not in EDITABLE_STATES or (schedule.one_shot and armed is None):
        return Preview()
    return preview_fires(
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
    # A one-time schedule whose time has passed is due as soon as it is resumed.
    overdue = schedule.next_fire_at if schedule.one_shot else None
    return max(now, overdue) if overdue else None


# --- why it did not run -----------------------------------------------------------------------


def _why_at(schedule: Schedule, text: str, now: datetime) -> dict[str, Any]:
    if not text:
        return {
            "error": "Enter a time, for example 09:00, yesterday at 9am, 2 hours ago or 2026-03-01."
        }
    try:
        moment = past_moment_of("at", text, now, zone(schedule.timezone))
    except OverflowError:
        return {"error": f'"{text}" is before the year 1: enter a later time'}
    except DroverError as error:
        # The following lines list forms of future times.
        return {"error": str(error).partition("\n")[0]}
    return {"past": explain_past(schedule, moment, now)}
