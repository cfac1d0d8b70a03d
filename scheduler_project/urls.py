"""Where requests go."""

from django.contrib import admin
from django.urls import include, path

from agents_app.admin import doctor
from gateway_app.login import login

admin.autodiscover()

urlpatterns = [
    path("", include("gateway_app.urls")),
    path("admin/login/", login),
    path("admin/doctor/", admin.site.admin_view(doctor.page), name="doctor"),
    path("admin/doctor/findings/", admin.site.admin_view(doctor.findings), name="doctor_findings"),
    path("admin/", admin.site.urls),
]
