"""Pages of django-celery-beat's tables, in the layout of the other pages."""

from typing import Any

from django.contrib import admin
from django.http import HttpRequest
from django_celery_beat import admin as beat
from django_celery_beat.models import (
    ClockedSchedule,
    CrontabSchedule,
    IntervalSchedule,
    PeriodicTask,
    SolarSchedule,
)
from unfold.admin import TabularInline
from unfold.widgets import UnfoldAdminSelectWidget, UnfoldAdminTextInputWidget

from agents_app.admin.base import NamedPages

for _model in (PeriodicTask, IntervalSchedule, CrontabSchedule, SolarSchedule, ClockedSchedule):
    admin.site.unregister(_model)


class TaskSelect(UnfoldAdminSelectWidget, beat.TaskSelectWidget):  # type: ignore[misc]
    """The registered tasks as an Unfold select."""


class PeriodicTaskForm(beat.PeriodicTaskForm):  # type: ignore[misc]
    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.fields["task"].widget = UnfoldAdminTextInputWidget()
        self.fields["regtask"].widget = TaskSelect()
        if crontab := self.fields.get("crontab"):  # absent for users who may only view
            crontab.label_from_instance = lambda row: f"{row.human_readable} ({row})"


def _without(name: str, fieldsets: Any) -> list[tuple[Any, dict[str, Any]]]:
    return [
        (title, {**options, "fields": [field for field in options["fields"] if field != name]})
        for title, options in fieldsets
    ]


@admin.register(PeriodicTask)
class PeriodicTaskAdmin(beat.PeriodicTaskAdmin, NamedPages):  # type: ignore[misc]
    form = PeriodicTaskForm
    # The inherited template shows the description of a crontab with an inline script, which the
    # Content-Security-Policy blocks; here each choice contains its description.
    change_form_template = None
    fieldsets = _without("crontab_translation", beat.PeriodicTaskAdmin.fieldsets)
    readonly_fields = ("last_run_at",)
    # Beat executes these tasks itself; the inherited action would send them to a worker.
    actions = ("enable_tasks", "disable_tasks")
    list_display = ("name", "enabled", "scheduler", "task", "last_run_at")
    list_filter = ("enabled",)
    date_hierarchy = None

    # The inherited actions require only the permission to view.
    @admin.action(permissions=["change"], description="Enable")
    def enable_tasks(self, request: HttpRequest, queryset: Any) -> None:
        super().enable_tasks(request, queryset)

    @admin.action(permissions=["change"], description="Disable")
    def disable_tasks(self, request: HttpRequest, queryset: Any) -> None:
        super().disable_tasks(request, queryset)


class PeriodicTaskInline(beat.PeriodicTaskInline, TabularInline):  # type: ignore[misc]
    """The periodic tasks that use a schedule."""


class BeatScheduleAdmin(NamedPages):
    inlines = [PeriodicTaskInline]


@admin.register(CrontabSchedule)
class CrontabScheduleAdmin(BeatScheduleAdmin):
    list_display = ("__str__", "human_readable")
    readonly_fields = ("human_readable",)


admin.site.register([IntervalSchedule, SolarSchedule, ClockedSchedule], BeatScheduleAdmin)
