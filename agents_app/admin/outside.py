"""Who is told of failures, and who failed to log in; nothing is changed here."""

from django.contrib import admin
from django.utils.safestring import SafeString

from agents_app.admin.base import RecordAdmin, utc_now
from agents_app.admin.show import when
from agents_app.models import LoginFailure, NotifyTarget
from agents_app.notifications import shown


@admin.register(NotifyTarget)
class NotifyTargetAdmin(RecordAdmin):
    list_display = ["target", "format", "failing", "last_error"]
    ordering = ["id"]
    fields = ["format", "events", "failing_since", "failures", "next_try_at", "last_error"]

    @admin.display(description="Target")
    def target(self, target: NotifyTarget) -> str:
        """Without what may be a secret in its address."""
        return shown(target)

    @admin.display(description="Failing since", ordering="failing_since")
    def failing(self, target: NotifyTarget) -> SafeString:
        return when(target.failing_since, utc_now())


@admin.register(LoginFailure)
class LoginFailureAdmin(RecordAdmin):
    list_display = ["user_name", "address", "at"]
    search_fields = ["user_name", "address"]
    ordering = ["-id"]
