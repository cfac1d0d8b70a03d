"""Where requests go."""

from django.contrib import admin
from django.urls import include, path

urlpatterns = [
    path("", include("gateway_app.urls")),
    path("admin/", admin.site.urls),
]
