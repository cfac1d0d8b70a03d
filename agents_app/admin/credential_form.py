"""The form of a credential: its value can be typed in, and is never shown again."""

import json
from typing import Any

from django import forms
from unfold.widgets import UnfoldAdminTextareaWidget, UnfoldAdminTextInputWidget

from agents_app.errors import Refused
from agents_app.models import Credential
from agents_app.secrets import (
    CREDENTIAL_TYPES,
    DEFAULT_INSTANCE,
    VALUE,
    Name,
    checked,
    name_of,
    parse_name,
    type_of,
)


class NeverShown(UnfoldAdminTextareaWidget):  # type: ignore[misc]
    """Not a field for passwords: keys have several lines. A refused form comes back without it."""

    def format_value(self, _value: object) -> str:
        return ""


class CredentialForm(forms.ModelForm):  # type: ignore[type-arg]
    type = forms.CharField(
        widget=UnfoldAdminTextInputWidget(),
        help_text=f"{', '.join(CREDENTIAL_TYPES)}, or a name of your own.",
    )
    instance_name = forms.CharField(
        label="Instance",
        initial=DEFAULT_INSTANCE,
        widget=UnfoldAdminTextInputWidget(),
        help_text="Where there are several of a type; agents write type:instance.",
    )
    new_value = forms.CharField(
        label="Value",
        strip=False,
        widget=NeverShown(attrs={"autocomplete": "off", "spellcheck": "false"}),
        help_text="It is sealed, and never shown again. A type with several fields, such as aws, "
        "takes a JSON object of them.",
    )

    class Meta:
        model = Credential
        fields = ["tenant"]

    def __init__(self, *args: Any, **options: Any) -> None:
        super().__init__(*args, **options)
        if self.instance.pk:
            # Only its value can be replaced.
            del self.fields["type"], self.fields["instance_name"]

    def clean(self) -> dict[str, Any]:
        cleaned = super().clean() or {}
        try:
            self.name = self._name(cleaned)
            self.values = checked(self.name, _values(self.name, cleaned.get("new_value", "")))
        except Refused as error:
            self.add_error("new_value", str(error))
        return cleaned

    def _name(self, cleaned: dict[str, Any]) -> Name:
        if self.instance.pk:
            return name_of(self.instance)
        return parse_name(f"{cleaned.get('type', '')}:{cleaned.get('instance_name', '')}")


def _values(name: Name, text: str) -> dict[str, str]:
    fields = type_of(name.type).fields
    if VALUE in fields:
        return {VALUE: text}
    try:
        return {key: value for key, value in json.loads(text).items() if isinstance(value, str)}
    except (ValueError, AttributeError):
        raise Refused(f"{name} takes a JSON object with {', '.join(fields)}") from None
