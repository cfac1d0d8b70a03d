"""The admin application, which loads its pages with the first request."""

from collections.abc import Sequence
from typing import Any

from django.apps import AppConfig
from django.contrib.admin.apps import SimpleAdminConfig
from django.contrib.admin.checks import check_admin_app, check_dependencies
from django.core.checks import CheckMessage, Tags, register


class PagesConfig(SimpleAdminConfig):
    """Does not load the pages at start, which halves the start time of commands; urls.py does."""

    def ready(self) -> None:
        register(check_dependencies, Tags.admin)
        register(_check_pages, Tags.admin)


def _check_pages(app_configs: Sequence[AppConfig] | None, **options: Any) -> Sequence[CheckMessage]:
    """Loads the pages before the check, which reads them."""
    import scheduler_project.urls  # noqa: F401

    return check_admin_app(app_configs, **options)
