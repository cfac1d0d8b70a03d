"""The login page of the admin, with a limit on attempts (agents_app.accounts.logins), and the page
of one-time login links."""

import secrets
from datetime import UTC, datetime, timedelta

from django.conf import settings
from django.contrib import admin, auth
from django.core import signing
from django.http import HttpRequest, HttpResponse
from django.http.response import HttpResponseBase
from django.shortcuts import redirect, render
from django.urls import reverse
from django.views.decorators.cache import never_cache
from django.views.decorators.csrf import csrf_protect
from django.views.decorators.debug import sensitive_post_parameters
from django.views.decorators.http import require_http_methods

from agents_app.accounts import login_links, logins
from agents_app.conf import CONF, command_line

# A browser with this cookie has logged in as the name in it; the cookie replaces no password.
DEVICE_COOKIE = f"drover_device_{CONF.port}"
DEVICE_REMEMBERED = timedelta(days=90)
_SALT = "drover.device"
_BACKEND = "django.contrib.auth.backends.ModelBackend"


@never_cache
@sensitive_post_parameters("password")
def login(request: HttpRequest) -> HttpResponseBase:
    """Counts each attempt before the password is checked; 429 after too many failures."""
    if request.method != "POST":
        return admin.site.login(request)
    name, address = request.POST.get("username", ""), request.META.get("REMOTE_ADDR", "")
    device = _device_of(request, name)
    try:
        attempt = logins.begin_attempt(name, address, _utc_now(), device)
    except logins.Locked as locked:
        return _locked(request, locked.retry_after_seconds)
    response = admin.site.login(request)
    # Django redirects after a successful login, and else shows the form again.
    succeeded = response.status_code == 302
    (logins.record_success if succeeded else logins.record_failure)(attempt, _utc_now())
    if succeeded and not device:
        _remember_device(response, name)
    return response


@never_cache
@csrf_protect
@require_http_methods(["GET", "HEAD", "POST"])
def login_link(request: HttpRequest, token: str) -> HttpResponse:
    """A one-time login link: GET shows a button, POST uses the link up and logs in.

    GET changes nothing, because previews of chat programs and mail scanners open links.
    """
    now = _utc_now()
    if request.method == "POST":
        user = login_links.use_link(token, request.META.get("REMOTE_ADDR", ""), now)
        if user is not None:
            auth.login(request, user, backend=_BACKEND)
            return redirect("admin:index")
    found = login_links.find_link_user(token, now)
    context = {
        **admin.site.each_context(request),
        "command": command_line("login_link"),
        "user_name": found.get_username() if found else "",
    }
    response = render(request, "drover/login_link.html", context, status=200 if found else 410)
    # The address has the token: no other site may learn it.
    response["Referrer-Policy"] = "no-referrer"
    return response


def _device_of(request: HttpRequest, name: str) -> str:
    """The id of the browser, if the name has logged in with it before; else nothing."""
    try:
        known, device = signing.loads(
            request.COOKIES.get(DEVICE_COOKIE, ""), salt=_SALT, max_age=DEVICE_REMEMBERED
        )
    except (signing.BadSignature, ValueError, TypeError):
        return ""
    return str(device) if known == logins.login_name(name) else ""


def _remember_device(response: HttpResponseBase, name: str) -> None:
    value = [logins.login_name(name), secrets.token_urlsafe(16)]
    response.set_cookie(
        DEVICE_COOKIE,
        signing.dumps(value, salt=_SALT),
        max_age=DEVICE_REMEMBERED,
        path=reverse("admin:login"),
        secure=settings.SESSION_COOKIE_SECURE,
        httponly=True,
        samesite="Lax",
    )


def _locked(request: HttpRequest, seconds: int) -> HttpResponseBase:
    context = {**admin.site.each_context(request), "minutes": -(-seconds // 60)}
    response = render(request, "drover/locked.html", context, status=429)
    response["Retry-After"] = str(seconds)
    return response


def _utc_now() -> datetime:
    return datetime.now(UTC)
