"""The form of a webhook source: a secret can be typed in, and is never shown again."""

from typing import Any

from django import forms
from unfold.widgets import UnfoldAdminPasswordWidget, UnfoldAdminTextInputWidget

from agents_app.errors import ConfigError
from agents_app.models import WebhookSource
from agents_app.skills import WORD
from agents_app.webhooks import SHORTEST_SECRET
from agents_app.webhooks.providers import PROVIDERS, provider_for

TYPES = [(name, name) for name in PROVIDERS]


class SourceForm(forms.ModelForm):  # type: ignore[type-arg]
    type = forms.ChoiceField(choices=TYPES, help_text="Who sends: it decides how they sign.")
    new_secret = forms.CharField(
        required=False,
        strip=False,
        widget=UnfoldAdminPasswordWidget(attrs={"autocomplete": "new-password"}),
        help_text="Counts beside those that are there. It is sealed, and never shown again.",
    )
    new_secret_name = forms.SlugField(
        required=False,
        widget=UnfoldAdminTextInputWidget(),
        max_length=100,
        help_text="What you will call it, such as 2026-spring.",
    )

    class Meta:
        model = WebhookSource
        fields = ["tenant", "name", "type", "options", "credential", "allow_unsigned"]

    def clean_name(self) -> str:
        name: str = self.cleaned_data["name"]
        if not WORD.fullmatch(name):
            raise forms.ValidationError("Use one word of letters, digits, '.', '_' and '-'.")
        return name

    def clean_new_secret(self) -> str:
        secret: str = self.cleaned_data["new_secret"]
        if secret and len(secret) < SHORTEST_SECRET:
            raise forms.ValidationError(f"At least {SHORTEST_SECRET} characters.")
        return secret

    def clean(self) -> dict[str, Any]:
        cleaned = super().clean() or {}
        if cleaned.get("new_secret") and not cleaned.get("new_secret_name"):
            self.add_error("new_secret_name", "Give the secret a name, to revoke it by.")
        options = cleaned.get("options")
        if not isinstance(options or {}, dict):
            self.add_error("options", 'Settings are an object, such as {"header": "X-Sig"}.')
        elif "type" in cleaned:
            self._check(cleaned["type"], options or {})
        return cleaned

    def _check(self, kind: str, options: dict[str, Any]) -> None:
        try:
            provider_for(kind, options)
        except ConfigError as error:
            self.add_error("options", str(error))
