"""The peer's addresses: the admin, one page that says it is alive, and one that saves a row."""

from django.contrib import admin
from django.http import HttpRequest, HttpResponse
from django.urls import path

from tests.benchmarks.peer import hooks


def healthz(_request: HttpRequest) -> HttpResponse:
    return HttpResponse("ok")


urlpatterns = [
    path("healthz", healthz),
    path("admin/", admin.site.urls),
    path("webhooks/github", hooks.receive),
]
