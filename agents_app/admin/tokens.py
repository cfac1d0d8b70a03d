"""Pages of API tokens: created here, shown once, and revoked."""

from datetime import datetime
from typing import Any
from zoneinfo import ZoneInfo

from django import forms
from django.contrib import admin
from django.http import HttpRequest, HttpResponse
from django.template.response import TemplateResponse
from django.utils.safestring import SafeString
from unfold.widgets import UnfoldAdminTextInputWidget

from agents_app.accounts import revoke_token, tokens
from agents_app.admin.base import Act, RecordAdmin, Verb, utc_now
from agents_app.admin.formatting import badge, when
from agents_app.clock import HOST_ZONE
from agents_app.errors import DroverError, Refused
from agents_app.models import ApiToken
from agents_app.triggers import moment_of


def _revoke(token: ApiToken, act: Act) -> str:
    if not revoke_token(token, act.by, act.now):
        raise Refused("already revoked")
    return f"{token} revoked: requests with it are refused from now on"


REVOKE = Verb(
    "revoke", "Revoke", "key_off", _revoke, lambda token: not token.revoked_at, danger=True
)


class TokenForm(forms.ModelForm):  # type: ignore[type-arg]
    expires = forms.CharField(
        required=False,
        max_length=100,
        widget=UnfoldAdminTextInputWidget(),
        help_text="For example in 90 days, or 2027-01-31. Empty means never.",
    )
    places = forms.CharField(
        label="Addresses",
        required=False,
        max_length=5000,
        widget=UnfoldAdminTextInputWidget(),
        help_text="Addresses and networks that may use the token, separated by spaces, for "
        "example 203.0.113.7 10.0.0.0/8. Empty means all.",
    )

    class Meta:
        model = ApiToken
        fields = ["tenant", "name", "scope"]

    def clean_expires(self) -> datetime | None:
        text, now = self.cleaned_data["expires"].strip(), utc_now()
        try:
            expiry = moment_of("expires", text, now, ZoneInfo(HOST_ZONE)) if text else None
        except (DroverError, OverflowError) as error:
            raise forms.ValidationError(str(error).partition("\n")[0]) from None
        if expiry is not None and expiry <= now:
            raise forms.ValidationError("Enter a time in the future.")
        return expiry

    def clean_places(self) -> list[str]:
        try:
            return tokens.checked_addresses(self.cleaned_data["places"].replace(",", " ").split())
        except Refused as error:
            raise forms.ValidationError(str(error)) from None


@admin.register(ApiToken)
class ApiTokenAdmin(RecordAdmin):
    """The secret is shown on the page that follows the form, and never again."""

    verbs = (REVOKE,)
    form = TokenForm
    list_display = ["name", "tenant", "scope", "shown_state", "expires", "places", "created_at"]
    list_filter = ["scope"]
    list_select_related = ["tenant"]
    search_fields = ["name"]
    ordering = ["-pk"]
    record = [
        *("tenant", "name", "scope", "shown_state", "places"),
        *("created_at", "expires_at", "revoked_at"),
    ]

    def has_add_permission(self, request: HttpRequest) -> bool:
        return request.user.has_perm("agents_app.add_apitoken")

    def get_fields(self, _request: HttpRequest, token: Any = None) -> list[str]:
        return self.record if token else ["tenant", "name", "scope", "expires", "places"]

    def get_readonly_fields(self, _request: HttpRequest, token: Any = None) -> list[str]:
        return self.record if token else []

    def save_model(self, request: HttpRequest, token: ApiToken, form: Any, _: bool) -> None:
        made = tokens.create_token(
            *(token.tenant, token.name, token.scope, request.user.get_username(), utc_now()),
            expires_at=form.cleaned_data["expires"],
            addresses=form.cleaned_data["places"],
        )
        token.pk, token.shown_once = made.row.pk, made.secret  # type: ignore[attr-defined]

    def response_add(
        self, request: HttpRequest, token: ApiToken, _post_url_continue: str | None = None
    ) -> HttpResponse:
        """Not a redirect: the secret must not be in an address or a cookie."""
        context = {
            **self.admin_site.each_context(request),
            "title": self.page_name,
            "subtitle": str(token),
            "opts": self.opts,
            "token": token,
        }
        return TemplateResponse(request, "drover/new_token.html", context)

    @admin.display(description="State")
    def shown_state(self, token: ApiToken) -> SafeString:
        if token.revoked_at:
            return badge("revoked")
        expired = token.expires_at is not None and token.expires_at <= utc_now()
        return badge("expired") if expired else badge("enabled")

    @admin.display(ordering="expires_at")
    def expires(self, token: ApiToken) -> SafeString:
        return when(token.expires_at, utc_now())

    @admin.display(description="Addresses")
    def places(self, token: ApiToken) -> str:
        return ", ".join(token.addresses) or "all"
