"""The admin as an application whose pages are found when somebody asks for them."""

from collections.abc import Sequence
from typing import Any

from django.apps import AppConfig
from django.contrib.admin.apps import SimpleAdminConfig
from django.contrib.admin.checks import check_admin_app, check_dependencies
from django.core.checks import CheckMessage, Tags, register


class PagesConfig(SimpleAdminConfig):
    """Commands have no pages, and start in half the time without them; urls.py finds them."""

    def ready(self) -> None:
        register(check_dependencies, Tags.admin)
        register(_check_pages, Tags.admin)


def _check_pages(app_configs: Sequence[AppConfig] | None, **options: Any) -> Sequence[CheckMessage]:
    """What nobody has found yet cannot be checked."""
    import scheduler_project.urls  # noqa: F401

    return check_admin_app(app_configs, **options)
