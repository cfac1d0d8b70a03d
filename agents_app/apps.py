"""Django's entry in the list of applications."""

import gc
from typing import Any

from django.apps import AppConfig
from django.db.models.signals import post_migrate
from django.utils.module_loading import import_string


class AgentsConfig(AppConfig):
    name = "agents_app"
    label = "agents_app"
    verbose_name = "Drover"

    def ready(self) -> None:
        from agents_app import checks  # noqa: F401

        post_migrate.connect(_after_migration, sender=self)

        # scheduler_project disables the search for cycles while modules are loaded. What was loaded
        # stays and is not searched.
        gc.freeze()
        gc.enable()


def _after_migration(using: str, **_: Any) -> None:
    # Loaded only then: other processes start without it.
    import_string("agents_app.accounts.create_groups")(using)
