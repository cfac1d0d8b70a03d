"""Addresses outside the admin."""

from django.templatetags.static import static
from django.urls import path
from django.views.generic import RedirectView

from gateway_app import health, metrics
from gateway_app.api import API, api_urls

urlpatterns = [
    path("", RedirectView.as_view(pattern_name="admin:index")),
    # Browsers ask for it wherever a page does not name another.
    path("favicon.ico", RedirectView.as_view(url=static("drover/icon.svg"))),
    path("healthz", health.healthz),
    path("readyz", health.readyz),
    path("metrics", metrics.metrics),
    # Last: they answer for every address below /v1.
    *api_urls(API),
]
