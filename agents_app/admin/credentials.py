"""Pages and form of credentials: values are entered or replaced, and never shown."""

import json
from typing import Any

from django import forms
from django.contrib import admin
from django.http import HttpRequest
from django.utils.safestring import SafeString
from unfold.widgets import UnfoldAdminTextareaWidget, UnfoldAdminTextInputWidget

from agents_app.admin.base import Act, DroverAdmin, Verb, utc_now
from agents_app.admin.formatting import when
from agents_app.errors import Refused
from agents_app.models import Credential
from agents_app.secrets import (
    CREDENTIAL_TYPES,
    DEFAULT_INSTANCE,
    VALUE,
    Name,
    checked_values,
    credentials,
    name_of,
    parse_name,
    type_of,
)


def _remove(credential: Credential, act: Act) -> str:
    if not credentials.remove_credential(credential, act.by, act.now):
        raise Refused("already removed")
    return f"{name_of(credential)} removed: runs that need it fail from now on"


REMOVE = Verb("remove", "Remove", "key_off", _remove, danger=True)


class SecretTextarea(UnfoldAdminTextareaWidget):  # type: ignore[misc]
    """A text area, because keys have several lines; never contains the submitted value."""

    def format_value(self, _value: object) -> str:
        return ""


class CredentialForm(forms.ModelForm):  # type: ignore[type-arg]
    type = forms.CharField(
        widget=UnfoldAdminTextInputWidget(),
        help_text=f"{', '.join(CREDENTIAL_TYPES)}, or a custom name.",
    )
    instance_name = forms.CharField(
        label="Instance",
        initial=DEFAULT_INSTANCE,
        widget=UnfoldAdminTextInputWidget(),
        help_text="Distinguishes several credentials of one type; agents write type:instance.",
    )
    new_value = forms.CharField(
        label="Value",
        strip=False,
        widget=SecretTextarea(attrs={"autocomplete": "off", "spellcheck": "false"}),
        help_text="Stored encrypted and never shown again. Enter a JSON object for a type with "
        "several fields, such as aws.",
    )

    class Meta:
        model = Credential
        fields = ["tenant"]

    def __init__(self, *args: Any, **options: Any) -> None:
        super().__init__(*args, **options)
        if self.instance.pk:
            # An existing credential keeps its name; only the value can be replaced.
            del self.fields["type"], self.fields["instance_name"]

    def clean(self) -> dict[str, Any]:
        cleaned = super().clean() or {}
        try:
            self.name = self._name(cleaned)
            self.values = checked_values(
                self.name, _values(self.name, cleaned.get("new_value", ""))
            )
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
        raise Refused(f"{name}: enter a JSON object with the fields {', '.join(fields)}") from None


@admin.register(Credential)
class CredentialAdmin(DroverAdmin):
    verbs = (REMOVE,)
    form = CredentialForm
    list_display = ["name", "tenant", "changed", "changed_by"]
    list_filter = ["type"]
    list_select_related = ["tenant"]
    search_fields = ["type", "instance"]
    ordering = ["type", "instance"]
    record = ["tenant", "name", "created_at", "changed_at", "changed_by"]

    def get_fields(self, _request: HttpRequest, credential: Any = None) -> list[str]:
        if credential is None:
            return ["tenant", "type", "instance_name", "new_value"]
        return [*self.record, "new_value"]

    def get_readonly_fields(self, _request: HttpRequest, credential: Any = None) -> list[str]:
        return [] if credential is None else self.record

    def save_model(self, request: HttpRequest, row: Credential, form: Any, _: bool) -> None:
        by, now = request.user.get_username(), utc_now()
        credentials.set_credential(row.tenant, form.name, form.values, by, now)
        kept = credentials.find_credential(row.tenant, str(form.name))
        row.pk, row.type, row.instance = kept.pk, kept.type, kept.instance

    def row_name(self, row: Credential) -> str:
        return str(name_of(row))

    @admin.display(description="Credential", ordering="type")
    def name(self, credential: Credential) -> str:
        return str(name_of(credential))

    @admin.display(ordering="changed_at")
    def changed(self, credential: Credential) -> SafeString:
        return when(credential.changed_at, utc_now())
