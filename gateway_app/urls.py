"""Addresses outside the admin."""

from django.urls import path
from django.views.generic import RedirectView

from gateway_app import health

urlpatterns = [
    path("", RedirectView.as_view(pattern_name="admin:index")),
    path("healthz", health.healthz),
    path("readyz", health.readyz),
]
