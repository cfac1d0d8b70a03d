"""Django's entry in the list of applications."""

import gc

from django.apps import AppConfig


class AgentsConfig(AppConfig):
    name = "agents_app"
    label = "agents_app"
    verbose_name = "Drover"

    def ready(self) -> None:
        from agents_app import checks  # noqa: F401

        # scheduler_project disables the search for cycles while modules are loaded. What was loaded
        # stays and is not searched.
        gc.freeze()
        gc.enable()
