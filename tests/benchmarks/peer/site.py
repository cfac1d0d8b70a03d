"""The peer's addresses: the admin and one page that says it is alive."""

from django.contrib import admin
from django.http import HttpRequest, HttpResponse
from django.urls import path


def healthz(_request: HttpRequest) -> HttpResponse:
    return HttpResponse("ok")


urlpatterns = [path("healthz", healthz), path("admin/", admin.site.urls)]
