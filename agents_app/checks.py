"""Settings that cannot work are refused at start, each with an id and what to do."""

from typing import Any

from django.core.checks import CheckMessage, Error, Warning, register

from agents_app.conf import CONF

LOOPBACK = frozenset({"127.0.0.1", "localhost", "::1"})


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


@register()
def somebody_says_that_a_request_came_by_tls(**_: Any) -> list[CheckMessage]:
    if not CONF.tls or CONF.trusted_proxies:
        return []
    return [
        Error(
            f"DROVER_PUBLIC_URL is {CONF.public_url}, and no proxy is trusted to say that a "
            "request came by https: each would be sent there again and again.",
            hint="Set DROVER_TRUSTED_PROXIES to the address of the proxy that ends TLS.",
            id="drover.E003",
        )
    ]


@register()
def strangers_are_expected(**_: Any) -> list[CheckMessage]:
    if CONF.host in LOOPBACK or CONF.public_url or CONF.allowed_hosts:
        return []
    return [
        Warning(
            f"DROVER_HOST is {CONF.host}, so other machines reach the gateway, but it answers to "
            "the names of this one alone.",
            hint="Set DROVER_PUBLIC_URL to the address that people type, https://..., and "
            "DROVER_TRUSTED_PROXIES to the proxy that ends TLS.",
            id="drover.W001",
        )
    ]


@register()
def passwords_travel_sealed(**_: Any) -> list[CheckMessage]:
    if CONF.tls or not CONF.public_url or CONF.public_host in LOOPBACK:
        return []
    return [
        Warning(
            f"DROVER_PUBLIC_URL is {CONF.public_url}: passwords and tokens travel in the clear.",
            hint="Put a proxy with TLS in front, name it in DROVER_TRUSTED_PROXIES, and set "
            "DROVER_PUBLIC_URL to https://...",
            id="drover.W002",
        )
    ]
