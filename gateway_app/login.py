"""The login page of the admin, with a limit on attempts (agents_app.accounts.logins)."""

from datetime import UTC, datetime

from django.contrib import admin
from django.http import HttpRequest
from django.http.response import HttpResponseBase
from django.shortcuts import render
from django.views.decorators.cache import never_cache
from django.views.decorators.debug import sensitive_post_parameters

from agents_app.accounts import logins


@never_cache
@sensitive_post_parameters("password")
def login(request: HttpRequest) -> HttpResponseBase:
    """Counts each attempt before the password is checked; 429 after too many failures."""
    if request.method != "POST":
        return admin.site.login(request)
    name, address = request.POST.get("username", ""), request.META.get("REMOTE_ADDR", "")
    try:
        attempt = logins.begin_attempt(name, address, _utc_now())
    except logins.Locked as locked:
        return _locked(request, locked.retry_after_seconds)
    response = admin.site.login(request)
    # Django redirects after a successful login, and else shows the form again.
    succeeded = response.status_code == 302
    (logins.record_success if succeeded else logins.record_failure)(attempt, _utc_now())
    return response


def _locked(request: HttpRequest, seconds: int) -> HttpResponseBase:
    context = {**admin.site.each_context(request), "minutes": -(-seconds // 60)}
    response = render(request, "drover/locked.html", context, status=429)
    response["Retry-After"] = str(seconds)
    return response


def _utc_now() -> datetime:
    return datetime.now(UTC)
