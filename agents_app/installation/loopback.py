"""Recognizes host names of the loopback interface; pure."""

import ipaddress


def is_loopback(host: str) -> bool:
    """Whether a host, without port, is loopback; an IPv6 address may have brackets."""
    try:
        return ipaddress.ip_address(host.strip("[]")).is_loopback
    except ValueError:
        return host == "localhost"
