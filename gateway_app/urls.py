"""The URL patterns of the gateway, without those of the admin."""

from django.templatetags.static import static
from django.urls import path
from django.views.generic import RedirectView

from gateway_app import health, metrics
from gateway_app.api import API, api_urls

urlpatterns = [
    path("", RedirectView.as_view(pattern_name="admin:index")),
    # Browsers request this address for pages that name no icon.
    path("favicon.ico", RedirectView.as_view(url=static("drover/icon.svg"))),
    path("healthz", health.healthz),
    path("readyz", health.readyz),
    path("metrics", metrics.metrics),
    # Last: these patterns match every address below /v1.
    *api_urls(API),
]
