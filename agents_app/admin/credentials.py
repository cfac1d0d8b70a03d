"""Credentials: given to runs, set and replaced by people, and shown to nobody."""

from typing import Any

from django.contrib import admin
from django.http import HttpRequest
from django.utils.safestring import SafeString

from agents_app.admin.base import Act, DroverAdmin, Verb, utc_now
from agents_app.admin.credential_form import CredentialForm
from agents_app.admin.show import when
from agents_app.errors import Refused
from agents_app.models import Credential
from agents_app.secrets import credentials, name_of


def _remove(credential: Credential, act: Act) -> str:
    if not credentials.remove_credential(credential, act.by, act.now):
        raise Refused("it is removed already")
    return f"{name_of(credential)} is removed: runs that need it fail from now on"


REMOVE = Verb("remove", "Remove", "key_off", _remove, danger=True)


@admin.register(Credential)
class CredentialAdmin(DroverAdmin):
    verbs = (REMOVE,)
    form = CredentialForm
    list_display = ["name", "tenant", "changed", "changed_by"]
    list_filter = ["tenant", "type"]
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

    @admin.display(description="Credential", ordering="type")
    def name(self, credential: Credential) -> str:
        return str(name_of(credential))

    @admin.display(ordering="changed_at")
    def changed(self, credential: Credential) -> SafeString:
        return when(credential.changed_at, utc_now())
