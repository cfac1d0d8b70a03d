"""The addresses of the installation: gateway, login, doctor and the admin."""

import re
from collections.abc import Iterator

from django.contrib import admin
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.urls import URLPattern, URLResolver, include, path, re_path
from django.utils.text import slugify

from agents_app.admin import doctor
from gateway_app.login import login, login_link

admin.autodiscover()

# `agents_app/run` -> `runs`: an address has the name that its page has.
_NAMES = {
    f"{model._meta.app_label}/{model._meta.model_name}": slugify(
        str(model._meta.verbose_name_plural)
    )
    for model in admin.site._registry
}


def _admin_urls() -> Iterator[URLPattern | URLResolver]:
    for pattern in admin.site.get_urls():
        name = _NAMES.get(str(pattern.pattern).strip("/"))
        if name is None or isinstance(pattern, URLPattern):
            yield pattern
        else:
            yield path(f"{name}/", include(pattern.url_patterns))


def _moved(request: HttpRequest, table: str, rest: str) -> HttpResponse:
    """Addresses of version 0.1.0, which bookmarks and sent notifications have."""
    query = request.META.get("QUERY_STRING", "")
    address = f"/admin/{_NAMES[table]}/{rest}" + (f"?{query}" if query else "")
    return redirect(address, permanent=True)


_OLD_ADDRESS = rf"^admin/(?P<table>{'|'.join(map(re.escape, _NAMES))})/(?P<rest>.*)$"

urlpatterns = [
    path("", include("gateway_app.urls")),
    path("admin/login/", login),
    path("admin/login/link/<str:token>/", login_link, name="login_link"),
    path("admin/doctor/", admin.site.admin_view(doctor.page), name="doctor"),
    path("admin/doctor/findings/", admin.site.admin_view(doctor.findings), name="doctor_findings"),
    re_path(_OLD_ADDRESS, _moved),
    path("admin/", (list(_admin_urls()), "admin", admin.site.name)),
]
