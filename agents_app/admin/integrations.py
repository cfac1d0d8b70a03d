"""Pages of webhook sources, their secrets, and notifications."""

from typing import Any

from django import forms
from django.contrib import admin
from django.db.models import QuerySet
from django.http import HttpRequest
from django.utils.html import format_html
from django.utils.safestring import SafeString
from unfold.widgets import (
    UnfoldAdminPasswordWidget,
    UnfoldAdminSelectWidget,
    UnfoldAdminTextInputWidget,
)

from agents_app.admin.base import Act, DroverAdmin, RecordAdmin, Verb, utc_now
from agents_app.admin.formatting import badge, link_to, webhook_url, when
from agents_app.errors import ConfigError, DroverError, Refused
from agents_app.models import NotifyTarget, WebhookSecret, WebhookSource
from agents_app.notifications import target_label
from agents_app.skills import WORD
from agents_app.webhooks import SHORTEST_SECRET, sources
from agents_app.webhooks.providers import PROVIDERS, provider_for

# --- verbs ----------------------------------------------------------------------------------


def _revoke(secret: WebhookSecret, act: Act) -> str:
    if not sources.revoke_secret(secret, act.by, act.now):
        raise Refused("already revoked")
    return f"{secret} of {secret.source} revoked: deliveries signed with it are refused"


def _switch(source: WebhookSource, act: Act, *, on: bool) -> str:
    if not sources.set_enabled(source, act.by, act.now, on=on):
        raise Refused(f"already {'enabled' if on else 'disabled'}")
    return f"{source} {'enabled' if on else 'disabled: its deliveries get 404'}"


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


# --- the form of a source --------------------------------------------------------------------

TYPES = [(name, name) for name in PROVIDERS]


class SourceForm(forms.ModelForm):  # type: ignore[type-arg]
    type = forms.ChoiceField(
        choices=TYPES,
        widget=UnfoldAdminSelectWidget(),
        help_text="The sender; determines how signatures are checked.",
    )
    new_secret = forms.CharField(
        required=False,
        strip=False,
        widget=UnfoldAdminPasswordWidget(attrs={"autocomplete": "new-password"}),
        help_text="Valid in addition to existing secrets. Stored encrypted, never shown again.",
    )
    new_secret_name = forms.SlugField(
        required=False,
        widget=UnfoldAdminTextInputWidget(),
        max_length=100,
        help_text="Identifies the secret when you revoke it, for example 2026-spring.",
    )

    class Meta:
        model = WebhookSource
        fields = ["tenant", "name", "type", "options", "credential", "allow_unsigned"]

    def clean_name(self) -> str:
        name: str = self.cleaned_data["name"]
        if not WORD.fullmatch(name):
            raise forms.ValidationError("Use letters, digits, '.', '_' and '-' only.")
        return name

    def clean_new_secret(self) -> str:
        secret: str = self.cleaned_data["new_secret"]
        if secret and len(secret) < SHORTEST_SECRET:
            raise forms.ValidationError(f"Enter at least {SHORTEST_SECRET} characters.")
        return secret

    def clean(self) -> dict[str, Any]:
        cleaned = super().clean() or {}
        if cleaned.get("new_secret") and not cleaned.get("new_secret_name"):
            self.add_error("new_secret_name", "Enter a name for the secret.")
        options = cleaned.get("options")
        if not isinstance(options or {}, dict):
            self.add_error("options", 'Enter a JSON object, for example {"header": "X-Sig"}.')
        elif "type" in cleaned:
            self._check(cleaned["type"], options or {})
        return cleaned

    def _check(self, kind: str, options: dict[str, Any]) -> None:
        try:
            provider_for(kind, options)
        except ConfigError as error:
            self.add_error("options", str(error))


# --- pages ----------------------------------------------------------------------------------


@admin.register(WebhookSource)
class WebhookSourceAdmin(DroverAdmin):
    verbs = (ENABLE, DISABLE)
    form = SourceForm
    page_template = "drover/webhook_source.html"
    list_display = ["name", "type", "address", "shown_state", "origin", "refused"]
    list_filter = ["type", "origin"]
    search_fields = ["name", "type"]
    ordering = ["name"]
    settings = ["tenant", "name", "type", "options", "credential", "allow_unsigned"]
    record = ["origin", "disabled_at", "refused_count", "last_refused_at", "created_at"]
    readonly_fields = record
    fieldsets = [
        (None, {"fields": settings}),
        ("New secret", {"fields": ["new_secret", "new_secret_name"]}),
        ("Record", {"fields": record, "classes": ["collapse"]}),
    ]

    def get_readonly_fields(self, _request: HttpRequest, source: Any = None) -> list[str]:
        """Settings of a source from config.toml are read-only here; its secrets are not."""
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

    def page(self, request: HttpRequest, source: WebhookSource | None) -> dict[str, Any]:
        if source is None:
            return {}
        secrets = source.secrets.order_by("revoked_at", "-pk")
        url = webhook_url(request, source)
        return {"secrets": [(link_to(s), s) for s in secrets], "webhook_url": url}

    def address(self, source: WebhookSource) -> str:
        return sources.address_of(source)

    @admin.display(description="State")
    def shown_state(self, source: WebhookSource) -> SafeString:
        if source.disabled_at:
            return badge("disabled")
        return (
            badge("unsigned", "Accepts deliveries without a signature")
            if source.allow_unsigned
            else badge("enabled")
        )

    @admin.display(description="Refused", ordering="refused_count")
    def refused(self, source: WebhookSource) -> SafeString:
        at = when(source.last_refused_at, utc_now())
        return format_html("{} {}", source.refused_count, at) if source.refused_count else at


@admin.register(WebhookSecret)
class WebhookSecretAdmin(RecordAdmin):
    """Names only: the value of a secret is never shown."""

    verbs = (REVOKE,)
    list_display = ["name", "source", "created_at", "revoked_at"]
    list_filter = ["source"]
    list_select_related = ["source"]
    fields = ["name", "source", "created_at", "revoked_at"]
    ordering = ["revoked_at", "-pk"]


@admin.register(NotifyTarget)
class NotifyTargetAdmin(RecordAdmin):
    list_display = ["target", "format", "failing", "last_error"]
    ordering = ["id"]
    fields = ["format", "events", "failing_since", "failures", "next_try_at", "last_error"]

    @admin.display(description="Target")
    def target(self, target: NotifyTarget) -> str:
        """Without the part of the address that may be a secret."""
        return target_label(target)

    @admin.display(description="Failing since", ordering="failing_since")
    def failing(self, target: NotifyTarget) -> SafeString:
        return when(target.failing_since, utc_now())
