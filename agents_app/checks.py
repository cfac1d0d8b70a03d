"""Settings that cannot work are refused at start, each with an id and what to do."""

from typing import Any

from django.core.checks import CheckMessage, Error, register

from agents_app.conf import CONF


@register()
def leases_outlast_renewals(**_: Any) -> list[CheckMessage]:
    if CONF.lease_seconds >= 2 * CONF.renew_seconds:
        return []
    return [
        Error(
            f"A lease of {CONF.lease_seconds:g} s renewed every {CONF.renew_seconds:g} s ends "
            "when a single renewal is late.",
            hint="Set DROVER_LEASE_SECONDS to at least twice DROVER_RENEW_SECONDS.",
            id="drover.E001",
        )
    ]


@register()
def project_is_a_directory(**_: Any) -> list[CheckMessage]:
    if CONF.project.is_dir():
        return []
    return [
        Error(
            f"The project directory {CONF.project} does not exist.",
            hint="Create it, or point DROVER_PROJECT to the directory that holds agents/.",
            id="drover.E002",
        )
    ]
