"""Values as HTML or text: badges, links, times and durations; the time is passed in."""

from datetime import datetime, timedelta

from django.db.models import Model
from django.http import HttpRequest
from django.urls import reverse
from django.utils.html import format_html
from django.utils.safestring import SafeString
from django.utils.timezone import localtime

from agents_app.conf import CONF
from agents_app.models import WebhookSource
from agents_app.text import relative
from agents_app.webhooks import sources

NOTHING = SafeString('<span class="dv-nothing">-</span>')


def badge(state: str, hint: str = "") -> SafeString:
    """A label in the colour that drover.css has for the state."""
    return format_html(
        '<span class="dv-badge dv-{}" title="{}">{}</span>', state, hint, state.replace("_", " ")
    )


def page_of(row: Model) -> str:
    return page_at(row._meta.model_name or "", row.pk)


def page_at(model_name: str, key: int) -> str:
    return reverse(f"admin:agents_app_{model_name}_change", args=[key])


def webhook_url(request: HttpRequest, source: WebhookSource) -> str:
    """The URL for the settings of the sender: on the public address, else on that of the page."""
    base = CONF.public_url or request.build_absolute_uri("/").rstrip("/")
    return base + sources.address_of(source)


def link(url: str, text: object) -> SafeString:
    return format_html('<a class="dv-link" href="{}">{}</a>', url, text)


def link_to(row: Model | None, text: object = None) -> SafeString:
    return NOTHING if row is None else link(page_of(row), row if text is None else text)


def when(moment: datetime | None, now: datetime) -> SafeString:
    """The distance from now; the exact time is the tooltip."""
    if moment is None:
        return NOTHING
    texts = (moment.isoformat(), exact(moment), relative(moment, now))
    return format_html('<time datetime="{}" title="{}">{}</time>', *texts)


def exact(moment: datetime) -> str:
    return f"{localtime(moment):%Y-%m-%d %H:%M:%S %Z}"


def duration(seconds: float) -> str:
    """In one unit below a minute, in two units above."""
    if seconds < 1:
        return f"{seconds * 1000:.0f} ms"
    if seconds < 60:
        return f"{seconds:.1f} s"
    minutes, rest = divmod(int(seconds), 60)
    if minutes < 60:
        return f"{minutes} min {rest:02d} s"
    return f"{minutes // 60} h {minutes % 60:02d} min"


def run_duration(started_at: datetime | None, finished_at: datetime | None, now: datetime) -> str:
    if started_at is None:
        return "-"
    return duration(max(timedelta(0), (finished_at or now) - started_at).total_seconds())
