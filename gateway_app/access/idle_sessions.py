"""Idle sessions end: a session expires DROVER_SESSION_IDLE_MINUTES after its last use."""

import time

from django.conf import settings
from django.contrib.auth import SESSION_KEY
from django.http import HttpRequest
from django.utils.deprecation import MiddlewareMixin

USED_AT = "used_at"
# The time of use is stored at most this often: each time costs a write.
STORED_EVERY_SECONDS = 60


class IdleSessionMiddleware(MiddlewareMixin):
    """Moves the expiry of a session when a person uses it.

    Django stores the expiry, SESSION_COOKIE_AGE after the session was last changed."""

    def process_request(self, request: HttpRequest) -> None:
        if settings.SESSION_COOKIE_NAME not in request.COOKIES or not is_use(request):
            return
        session, now = request.session, int(time.time())
        every = min(STORED_EVERY_SECONDS, settings.SESSION_COOKIE_AGE // 10)
        if SESSION_KEY in session and now - session.get(USED_AT, 0) >= every:
            session[USED_AT] = now


def is_use(request: HttpRequest) -> bool:
    """Whether a person made the request: opened a page or changed something.

    Open pages reload parts of themselves, and listen to streams, as long as they are open. Browsers
    ask for text/html when they open a page, scripts do not. Over plain http browsers send no
    Sec-Fetch-Mode.
    """
    if "Authorization" in request.headers:
        return False  # by a token; the session is ignored
    if request.method not in {"GET", "HEAD"}:
        return True
    if "HX-Request" in request.headers or "text/html" not in request.headers.get("Accept", ""):
        return False
    return request.headers.get("Sec-Fetch-Mode", "navigate") == "navigate"
