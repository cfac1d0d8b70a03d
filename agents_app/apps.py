"""Django's entry in the list of applications."""

from django.apps import AppConfig


class AgentsConfig(AppConfig):
    name = "agents_app"
    label = "agents_app"
    verbose_name = "Drover"

    def ready(self) -> None:
        from agents_app import checks  # noqa: F401
