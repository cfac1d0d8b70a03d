"""The causes of a run as nested lists with links: for eyes, keyboards and screen readers alike."""

from django.utils.html import format_html, format_html_join
from django.utils.safestring import SafeString

from agents_app.admin.show import badge, page_at
from agents_app.reports import Cause

# More than these are folded until somebody wants to see them.
MOST_UNFOLDED = 20


def nested(causes: tuple[Cause, ...]) -> SafeString:
    if not causes:
        return SafeString("")
    items = format_html_join("", "<li>{}{}</li>", ((_line(c), nested(c.below)) for c in causes))
    if len(causes) <= MOST_UNFOLDED:
        return format_html("<ul>{}</ul>", items)
    folded = "<details><summary>{} calls</summary><ul>{}</ul></details>"
    return format_html(folded, f"{len(causes):,}", items)


def _line(cause: Cause) -> SafeString:
    state = badge(cause.state) if cause.state else ""
    detail = format_html(' <span class="dv-aside">{}</span>', cause.detail) if cause.detail else ""
    return format_html("{} {}{}", _name(cause), state, detail)


def _name(cause: Cause) -> SafeString:
    if cause.here:
        return format_html('<strong aria-current="true">{}</strong>', cause.label)
    if not cause.table:
        return format_html("<span>{}</span>", cause.label)
    url = page_at(cause.table, cause.key)
    return format_html('<a class="dv-link" href="{}">{}</a>', url, cause.label)
