"""Which names of hosts lead back to the machine that asks; pure."""

import ipaddress


def is_loopback(host: str) -> bool:
    """Without its port; an IPv6 address with or without its brackets."""
    try:
        return ipaddress.ip_address(host.strip("[]")).is_loopback
    except ValueError:
        return host == "localhost"
