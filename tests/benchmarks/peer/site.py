"""URLs of the peer: the admin, a health page, and the webhook view."""

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
