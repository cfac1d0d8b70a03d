"""How the admin looks and what its sidebar leads to; settings.py takes UNFOLD from here."""

from collections.abc import Callable
from typing import Any

from django.http import HttpRequest
from django.templatetags.static import static
from django.urls import reverse_lazy
from django.utils.functional import lazy

from agents_app.conf import CONF


def _may_see(model: str) -> Callable[[HttpRequest], bool]:
    app, _, name = model.partition(".")

    def allowed(request: HttpRequest) -> bool:
        return any(request.user.has_perm(f"{app}.{may}_{name}") for may in ("view", "change"))

    return allowed


def _table(title: str, icon: str, model: str) -> dict[str, Any]:
    link = reverse_lazy(f"admin:{model.replace('.', '_')}_changelist")
    return {"title": title, "icon": icon, "link": link, "permission": _may_see(model)}


def _static(name: str) -> Callable[[HttpRequest], str]:
    return lambda _request: static(f"drover/{name}")


def _live_script(request: HttpRequest) -> str:
    """Its address says whether this person may read the stream of events."""
    from gateway_app.access import READ, scopes_of

    listens = READ in scopes_of(request.user)
    return static("drover/live.js") + ("?listen" if listens else "")


def _on_schedules(request: HttpRequest) -> bool:
    """The calendar lies below them, and has a line of its own."""
    below = "/agents_app/schedule/"
    return below in request.path and not request.path.endswith(f"{below}calendar/")


_FLEET = [
    {"title": "Overview", "icon": "dashboard", "link": reverse_lazy("admin:index")},
    _table("Agents", "smart_toy", "agents_app.agent"),
    {**_table("Schedules", "schedule", "agents_app.schedule"), "active": _on_schedules},
    {
        "title": "Calendar",
        "icon": "calendar_month",
        "link": reverse_lazy("admin:agents_app_schedule_calendar"),
        "permission": _may_see("agents_app.schedule"),
    },
    _table("Rules", "rule", "agents_app.rulestate"),
    _table("Queue", "inbox", "agents_app.workitem"),
    _table("Runs", "play_circle", "agents_app.run"),
    _table("Credentials", "key", "agents_app.credential"),
]
_TALK = [
    _table("Calls", "call_split", "agents_app.agentcall"),
    _table("Messages", "mail", "agents_app.message"),
    _table("Locks", "lock", "agents_app.resourcelock"),
    _table("Waiting for locks", "hourglass", "agents_app.lockwait"),
]
_WEBHOOKS = [
    _table("Deliveries", "webhook", "agents_app.delivery"),
    _table("Sources", "rss_feed", "agents_app.webhooksource"),
    _table("Who is told", "campaign", "agents_app.notifytarget"),
]
_HISTORY = [
    _table("Firings", "event_available", "agents_app.firing"),
    _table("Journal", "history", "agents_app.runevent"),
    _table("Usage", "payments", "agents_app.usage"),
    _table("Heartbeats", "ecg_heart", "agents_app.heartbeat"),
]


def _wrong_lately() -> str:
    from agents_app.admin.doctor import wrong_lately

    return wrong_lately()


_MACHINES = [
    {
        "title": "Doctor",
        "icon": "stethoscope",
        "link": reverse_lazy("doctor"),
        "permission": "agents_app.admin.doctor.may_ask",
        # Looked at when a page is made; an empty one is not shown.
        "badge": lazy(_wrong_lately, str)(),
        "badge_variant": "danger",
    },
    _table("Workers", "memory", "agents_app.worker"),
    _table("Snapshots", "monitoring", "agents_app.machinesnapshot"),
    _table("Scheduler", "timer", "agents_app.scheduler"),
]
_FLOWER = [
    {
        "title": "Flower",
        "icon": "local_florist",
        "link": f"http://127.0.0.1:{CONF.flower_port}",
        "permission": "agents_app.admin.flower.may_open",
    }
] * CONF.flower
_DUTIES = [
    _table("Periodic tasks", "update", "django_celery_beat.periodictask"),
    _table("Intervals", "avg_pace", "django_celery_beat.intervalschedule"),
    _table("Crontabs", "calendar_clock", "django_celery_beat.crontabschedule"),
    _table("Clocked", "alarm", "django_celery_beat.clockedschedule"),
    _table("Solar", "wb_sunny", "django_celery_beat.solarschedule"),
]
_PEOPLE = [
    _table("Tenants", "domain", "agents_app.tenant"),
    _table("Users", "person", "auth.user"),
    _table("Groups", "group", "auth.group"),
    _table("Failed logins", "lock_clock", "agents_app.loginfailure"),
]

UNFOLD: dict[str, Any] = {
    "SITE_TITLE": "Drover",
    "SITE_HEADER": "Drover",
    "SITE_SUBHEADER": "Fleets of agents, on time",
    "SITE_SYMBOL": "hub",
    "SITE_FAVICONS": [
        {
            "rel": "icon",
            "type": "image/svg+xml",
            "href": lambda _request: static("drover/icon.svg"),
        }
    ],
    "SHOW_VIEW_ON_SITE": False,
    "ENVIRONMENT": "agents_app.admin.rules.header_label",
    "DASHBOARD_CALLBACK": "agents_app.admin.overview.overview",
    "STYLES": [
        _static("drover.css"),
        _static("live.css"),
        _static("overview.css"),
        _static("rules.css"),
    ],
    "SCRIPTS": [
        _static("drover.js"),
        _static("morph.js"),
        _live_script,
        _static("toasts.js"),
        _static("copy.js"),
        _static("arrow_keys.js"),
        _static("menu.js"),
    ],
    "BORDER_RADIUS": "8px",
    "COLORS": {
        "primary": {
            "50": "oklch(97.1% .019 187)",
            "100": "oklch(93.6% .05 186)",
            "200": "oklch(88% .09 185)",
            "300": "oklch(81% .125 184)",
            "400": "oklch(73% .13 183)",
            "500": "oklch(65% .12 184)",
            "600": "oklch(54% .102 186)",
            "700": "oklch(48.5% .088 188)",
            "800": "oklch(41.5% .072 190)",
            "900": "oklch(36% .06 192)",
            "950": "oklch(26% .045 194)",
        }
    },
    "SIDEBAR": {
        "show_search": True,
        "show_all_applications": False,
        "navigation": [
            {"title": "Fleet", "items": _FLEET},
            {"title": "Between agents", "separator": True, "collapsible": True, "items": _TALK},
            {"title": "Webhooks", "separator": True, "items": _WEBHOOKS},
            {"title": "History", "separator": True, "items": _HISTORY},
            {"title": "Machines", "separator": True, "items": _MACHINES + _FLOWER},
            {"title": "System duties", "separator": True, "collapsible": True, "items": _DUTIES},
            {"title": "People", "separator": True, "collapsible": True, "items": _PEOPLE},
        ],
    },
}
