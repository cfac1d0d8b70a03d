"""Where Flower is: it listens on loopback, so a link to it is right on the server alone."""

from typing import Any

from django.http import HttpRequest
from django.http.request import split_domain_port

from agents_app.conf import CONF
from agents_app.installation import is_loopback


def flower_of(request: HttpRequest) -> dict[str, Any]:
    """For drover/flower.html: a link, words for those who are somewhere else, or neither."""
    if not CONF.flower:
        return {}
    url = f"http://127.0.0.1:{CONF.flower_port}" if _from_the_server(request) else ""
    return {"flower_url": url, "flower_port": CONF.flower_port}


def may_open(request: HttpRequest) -> bool:
    """For the menu, where there is no room for words."""
    sees = any(request.user.has_perm(f"agents_app.{may}_worker") for may in ("view", "change"))
    return sees and _from_the_server(request)


def _from_the_server(request: HttpRequest) -> bool:
    host, _ = split_domain_port(request.get_host())
    return is_loopback(host)
