"""What agents used, day by day; nothing is changed here."""

from django.contrib import admin
from django.utils.safestring import SafeString

from agents_app.admin.base import RecordAdmin
from agents_app.admin.show import link_to
from agents_app.models import Usage


@admin.register(Usage)
class UsageAdmin(RecordAdmin):
    list_display = ["day", "of_agent", "tokens_used", "cost"]
    list_select_related = ["agent"]
    search_fields = ["agent__name"]
    ordering = ["-day", "agent__name"]
    fields = ["agent", "day", "tokens", "cost_usd"]

    @admin.display(description="Agent", ordering="agent__name")
    def of_agent(self, usage: Usage) -> SafeString:
        return link_to(usage.agent)

    @admin.display(description="Tokens", ordering="tokens")
    def tokens_used(self, usage: Usage) -> str:
        return f"{usage.tokens:,}"

    @admin.display(description="Cost", ordering="cost_usd")
    def cost(self, usage: Usage) -> str:
        return f"${usage.cost_usd:.2f}"
