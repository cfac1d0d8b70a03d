"""System duties: the rows of django-celery-beat, in the look of the other pages."""

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
from unfold.admin import ModelAdmin, TabularInline
from unfold.widgets import UnfoldAdminSelectWidget, UnfoldAdminTextInputWidget

for _model in (PeriodicTask, IntervalSchedule, CrontabSchedule, SolarSchedule, ClockedSchedule):
    admin.site.unregister(_model)


class TaskSelect(UnfoldAdminSelectWidget, beat.TaskSelectWidget):  # type: ignore[misc]
    """The registered tasks, as a select of ours."""


class DutyForm(beat.PeriodicTaskForm):  # type: ignore[misc]
    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.fields["task"].widget = UnfoldAdminTextInputWidget()
        self.fields["regtask"].widget = TaskSelect()


@admin.register(PeriodicTask)
class DutyAdmin(beat.PeriodicTaskAdmin, ModelAdmin):  # type: ignore[misc]
    form = DutyForm
    # Beat does the duties itself, so its parent's action to send them to a worker has no place.
    actions = ("enable_tasks", "disable_tasks")
    list_display = ("name", "enabled", "scheduler", "task", "last_run_at")
    list_filter = ("enabled",)
    date_hierarchy = None

    # The parent would let people act who may only look.
    @admin.action(permissions=["change"], description="Enable")
    def enable_tasks(self, request: HttpRequest, queryset: Any) -> None:
        super().enable_tasks(request, queryset)

    @admin.action(permissions=["change"], description="Disable")
    def disable_tasks(self, request: HttpRequest, queryset: Any) -> None:
        super().disable_tasks(request, queryset)


class DutiesOfSchedule(beat.PeriodicTaskInline, TabularInline):  # type: ignore[misc]
    """Which duties a schedule times."""


class BeatScheduleAdmin(ModelAdmin):  # type: ignore[misc]
    inlines = [DutiesOfSchedule]


@admin.register(CrontabSchedule)
class CrontabScheduleAdmin(BeatScheduleAdmin):
    list_display = ("__str__", "human_readable")
    readonly_fields = ("human_readable",)


admin.site.register([IntervalSchedule, SolarSchedule, ClockedSchedule], BeatScheduleAdmin)
