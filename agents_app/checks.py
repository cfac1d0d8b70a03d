"""System checks that refuse invalid settings at start, each with an id and a remedy."""

from typing import Any

from django.core.checks import CheckMessage, Error, Warning, register

from agents_app.conf import CONF

DROVER = "drover"
LOOPBACK = frozenset({"127.0.0.1", "localhost", "::1"})


@register(DROVER)
def check_lease_and_renewal(**_: Any) -> list[CheckMessage]:
    if CONF.lease_seconds >= 2 * CONF.heartbeat_seconds:
        return []
    return [
        Error(
            f"DROVER_LEASE_SECONDS is {CONF.lease_seconds:g} and DROVER_HEARTBEAT_SECONDS is "
            f"{CONF.heartbeat_seconds:g}: one late heartbeat would end a lease.",
            hint="Remove DROVER_LEASE_SECONDS and set DROVER_MISSED_HEARTBEATS, or set it to at "
            "least twice DROVER_HEARTBEAT_SECONDS.",
            id="drover.E001",
        )
    ]


@register(DROVER)
def check_project_directory(**_: Any) -> list[CheckMessage]:
    if CONF.project.is_dir():
        return []
    return [
        Error(
            f"The project directory {CONF.project} does not exist.",
            hint="Create it, or set DROVER_PROJECT to the directory that contains agents/.",
            id="drover.E002",
        )
    ]


@register(DROVER)
def check_trusted_proxy(**_: Any) -> list[CheckMessage]:
    if not CONF.tls or CONF.trusted_proxies:
        return []
    return [
        Error(
            f"DROVER_PUBLIC_URL is {CONF.public_url}, but no proxy is trusted to mark requests as "
            "https: every request would be redirected without end.",
            hint="Set DROVER_TRUSTED_PROXIES to the address of the proxy that terminates TLS.",
            id="drover.E003",
        )
    ]


@register(DROVER)
def check_reachable_host(**_: Any) -> list[CheckMessage]:
    if CONF.host in LOOPBACK or CONF.public_url or CONF.allowed_hosts:
        return []
    return [
        Warning(
            f"DROVER_HOST is {CONF.host}: other machines can reach the gateway, but it accepts "
            "only local host names.",
            hint="Set DROVER_PUBLIC_URL to the address in the browser, https://..., and "
            "DROVER_TRUSTED_PROXIES to the proxy that terminates TLS.",
            id="drover.W001",
        )
    ]


@register(DROVER)
def check_tls(**_: Any) -> list[CheckMessage]:
    if CONF.tls or not CONF.public_url or CONF.public_host in LOOPBACK:
        return []
    return [
        Warning(
            f"DROVER_PUBLIC_URL is {CONF.public_url}: passwords and tokens are sent unencrypted.",
            hint="Use a proxy with TLS, set DROVER_TRUSTED_PROXIES to its address, and "
            "DROVER_PUBLIC_URL to https://...",
            id="drover.W002",
        )
    ]
