"""Appearance and sidebar of the admin: the setting UNFOLD, which settings.py takes from here."""

from collections.abc import Callable
from typing import Any

from django.apps import apps
from django.http import HttpRequest
from django.templatetags.static import static
from django.urls import reverse, reverse_lazy
from django.utils.functional import lazy
from django.utils.text import capfirst

from agents_app.conf import CONF

CALENDAR = "admin:agents_app_schedule_calendar"


def _may_see(model: str) -> Callable[[HttpRequest], bool]:
    app, _, name = model.partition(".")

    def allowed(request: HttpRequest) -> bool:
        return any(request.user.has_perm(f"{app}.{may}_{name}") for may in ("view", "change"))

    return allowed


def _name(model: str) -> str:
    """The table's only name; pages, browser tabs and addresses take it from the model, too."""
    return capfirst(str(apps.get_model(model)._meta.verbose_name_plural))


def _table(icon: str, model: str) -> dict[str, Any]:
    return {
        # Models are not loaded yet when settings are read.
        "title": lazy(_name, str)(model),
        "icon": icon,
        "link": reverse_lazy(f"admin:{model.replace('.', '_')}_changelist"),
        "permission": _may_see(model),
    }


def _static(name: str) -> Callable[[HttpRequest], str]:
    return lambda _request: static(f"drover/{name}")


def _live_script(request: HttpRequest) -> str:
    """Adds `?listen` for users who may read the stream of events."""
    from gateway_app.access import READ, scopes_of

    listens = READ in scopes_of(request.user)
    return static("drover/live.js") + ("?listen" if listens else "")


def _on_schedules(request: HttpRequest) -> bool:
    """The calendar has an address below the schedules, and its own line in the sidebar."""
    schedules, calendar = reverse("admin:agents_app_schedule_changelist"), reverse(CALENDAR)
    return request.path.startswith(schedules) and request.path != calendar


_FLEET = [
    {"title": "Overview", "icon": "dashboard", "link": reverse_lazy("admin:index")},
    _table("smart_toy", "agents_app.agent"),
    {**_table("schedule", "agents_app.schedule"), "active": _on_schedules},
    {
        "title": "Calendar",
        "icon": "calendar_month",
        "link": reverse_lazy(CALENDAR),
        "permission": _may_see("agents_app.schedule"),
    },
    _table("rule", "agents_app.rulestate"),
    _table("inbox", "agents_app.workitem"),
    _table("play_circle", "agents_app.run"),
    _table("key", "agents_app.credential"),
]
_INTERACTION = [
    _table("call_split", "agents_app.agentcall"),
    _table("mail", "agents_app.message"),
    _table("lock", "agents_app.resourcelock"),
    _table("hourglass", "agents_app.lockwait"),
]
_INTEGRATIONS = [
    _table("webhook", "agents_app.delivery"),
    _table("rss_feed", "agents_app.webhooksource"),
    _table("assignment", "agents_app.worksource"),
    _table("assignment_ind", "agents_app.workclaim"),
    _table("campaign", "agents_app.notifytarget"),
]
_HISTORY = [
    _table("event_available", "agents_app.firing"),
    _table("history", "agents_app.runevent"),
    _table("payments", "agents_app.usage"),
    _table("ecg_heart", "agents_app.heartbeat"),
]


def _problem_count() -> str:
    from agents_app.admin.doctor import problem_count

    return problem_count()


_SYSTEM = [
    {
        "title": "Doctor",
        "icon": "stethoscope",
        "link": reverse_lazy("doctor"),
        "permission": "agents_app.admin.doctor.may_see_findings",
        # Evaluated for each page; an empty text shows no badge.
        "badge": lazy(_problem_count, str)(),
        "badge_variant": "danger",
    },
    _table("memory", "agents_app.worker"),
    _table("monitoring", "agents_app.machinesnapshot"),
    _table("timer", "agents_app.scheduler"),
]
_FLOWER = [
    {
        "title": "Flower",
        "icon": "local_florist",
        "link": f"http://127.0.0.1:{CONF.flower_port}",
        "permission": "agents_app.admin.machines.may_open_flower",
    }
] * CONF.flower
_CELERY_TABLES = (
    "periodictask",
    "crontabschedule",
    "intervalschedule",
    "solarschedule",
    "clockedschedule",
)
# The tables of Celery's scheduler have one entry in the sidebar, and tabs on their pages.
_CELERY = {**_table("update", "django_celery_beat.periodictask"), "title": "Celery"}
_CELERY_TABS = {
    "models": [
        each
        for name in _CELERY_TABLES
        for each in (
            f"django_celery_beat.{name}",
            {"name": f"django_celery_beat.{name}", "detail": True},
        )
    ],
    "items": [_table("", f"django_celery_beat.{name}") for name in _CELERY_TABLES],
}
_ACCOUNTS = [
    _table("domain", "agents_app.tenant"),
    _table("person", "auth.user"),
    _table("group", "auth.group"),
    _table("vpn_key", "agents_app.apitoken"),
    _table("lock_clock", "agents_app.loginfailure"),
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
    "TABS": [_CELERY_TABS],
    "SIDEBAR": {
        "show_search": True,
        "show_all_applications": False,
        "navigation": [
            {"title": "Fleet", "items": _FLEET},
            {
                "title": "Between agents",
                "separator": True,
                "collapsible": True,
                "items": _INTERACTION,
            },
            {"title": "Integrations", "separator": True, "items": _INTEGRATIONS},
            {"title": "History", "separator": True, "items": _HISTORY},
            {"title": "System", "separator": True, "items": [*_SYSTEM, _CELERY, *_FLOWER]},
            {"title": "Accounts", "separator": True, "items": _ACCOUNTS},
        ],
    },
}
