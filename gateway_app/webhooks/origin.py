"""Refuses unsigned requests that a web page of another site has sent, also by DNS rebinding."""

from collections.abc import Mapping
from urllib.parse import urlsplit

from django.conf import settings
from django.http.request import split_domain_port, validate_host


def is_foreign(headers: Mapping[str, str]) -> bool:
    """Whether the Host is not one of this installation, or the Origin is another site.

    A browser sends both; programs send a Host and no Origin."""
    host = headers.get("host", "")
    if host and not validate_host(split_domain_port(host)[0], settings.ALLOWED_HOSTS):
        return True
    origin = headers.get("origin")
    return origin is not None and not _is_own(origin, host)


def _is_own(origin: str, host: str) -> bool:
    try:
        same_host = urlsplit(origin).netloc.lower() == host.lower()
    except ValueError:
        return False
    return (same_host and bool(host)) or origin in settings.CSRF_TRUSTED_ORIGINS
