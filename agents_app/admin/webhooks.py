"""Webhooks: who may send them, and with which secrets."""

from typing import Any

from django.contrib import admin
from django.db.models import QuerySet
from django.http import HttpRequest
from django.utils.html import format_html
from django.utils.safestring import SafeString

from agents_app.admin.base import Act, DroverAdmin, RecordAdmin, Verb, utc_now
from agents_app.admin.show import badge, link_to, when
from agents_app.admin.webhook_form import SourceForm
from agents_app.errors import DroverError, Refused
from agents_app.models import WebhookSecret, WebhookSource
from agents_app.webhooks import sources

# --- verbs ----------------------------------------------------------------------------------


def _revoke(secret: WebhookSecret, act: Act) -> str:
    if not sources.revoke_secret(secret, act.by, act.now):
        raise Refused("it is revoked already")
    return f"nobody gets in by {secret} of {secret.source} any more"


def _switch(source: WebhookSource, act: Act, *, on: bool) -> str:
    if not sources.switch(source, act.by, act.now, on=on):
        raise Refused(f"it is {'on' if on else 'off'} already")
    return f"{source} is {'on' if on else 'off: whoever sends gets a 404'}"


REVOKE = Verb("revoke", "Revoke", "key_off", _revoke, lambda s: s.revoked_at is None, danger=True)
ENABLE = Verb(
    *("enable", "Enable", "toggle_on", lambda source, act: _switch(source, act, on=True)),
    fits=lambda source: source.disabled_at is not None,
)
DISABLE = Verb(
    *("disable", "Disable", "toggle_off", lambda source, act: _switch(source, act, on=False)),
    fits=lambda source: source.disabled_at is None,
    danger=True,
)


# --- pages ----------------------------------------------------------------------------------


@admin.register(WebhookSource)
class WebhookSourceAdmin(DroverAdmin):
    verbs = (ENABLE, DISABLE)
    form = SourceForm
    page_template = "drover/webhook_source.html"
    list_display = ["name", "type", "address", "shown_state", "origin", "refused"]
    list_filter = ["type", "origin", "tenant"]
    search_fields = ["name", "type"]
    ordering = ["name"]
    settings = ["tenant", "name", "type", "options", "credential", "allow_unsigned"]
    record = ["origin", "disabled_at", "refused_count", "last_refused_at", "created_at"]
    readonly_fields = record
    fieldsets = [
        (None, {"fields": settings}),
        ("A new secret", {"fields": ["new_secret", "new_secret_name"]}),
        ("Record", {"fields": record, "classes": ["collapse"]}),
    ]

    def get_readonly_fields(self, _request: HttpRequest, source: Any = None) -> list[str]:
        """What config.toml says is changed there; its secrets may be given here."""
        if source is None:
            return self.record
        of_file = source.origin == WebhookSource.Origin.FILE
        return self.record + (self.settings if of_file else ["tenant", "name"])

    def get_queryset(self, request: HttpRequest) -> QuerySet[WebhookSource]:
        rows: QuerySet[WebhookSource] = super().get_queryset(request)
        return rows.filter(removed_at__isnull=True)

    def save_model(self, request: HttpRequest, source: WebhookSource, form: Any, _: bool) -> None:
        by, now = request.user.get_username(), utc_now()
        sources.save_source(source, by, now)
        secret, name = (form.cleaned_data.get(n) for n in ("new_secret", "new_secret_name"))
        if not secret:
            return
        try:
            sources.add_secret(source, name, secret, by, now)
        except DroverError as error:
            self.message_user(request, str(error), "error")

    def page(self, _request: HttpRequest, source: WebhookSource | None) -> dict[str, Any]:
        if source is None:
            return {}
        secrets = source.secrets.order_by("revoked_at", "-pk")
        return {"secrets": [(link_to(s), s) for s in secrets], "address": self.address(source)}

    def address(self, source: WebhookSource) -> str:
        return f"/webhooks/{source.type}/{source.name}"

    @admin.display(description="State")
    def shown_state(self, source: WebhookSource) -> SafeString:
        if source.disabled_at:
            return badge("disabled")
        return badge("unsigned", "Lets in everybody") if source.allow_unsigned else badge("enabled")

    @admin.display(description="Refused", ordering="refused_count")
    def refused(self, source: WebhookSource) -> SafeString:
        at = when(source.last_refused_at, utc_now())
        return format_html("{} {}", source.refused_count, at) if source.refused_count else at


@admin.register(WebhookSecret)
class WebhookSecretAdmin(RecordAdmin):
    """Only names: what is sealed is not shown to anybody."""

    verbs = (REVOKE,)
    list_display = ["name", "source", "created_at", "revoked_at"]
    list_filter = ["source"]
    list_select_related = ["source"]
    fields = ["name", "source", "created_at", "revoked_at"]
    ordering = ["revoked_at", "-pk"]
