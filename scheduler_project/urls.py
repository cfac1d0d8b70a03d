"""Where requests go."""

from django.contrib import admin
from django.urls import include, path

from gateway_app.login import login

urlpatterns = [
    path("", include("gateway_app.urls")),
    path("admin/login/", login),
    path("admin/", admin.site.urls),
]
