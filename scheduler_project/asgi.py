"""The gateway's ASGI application: Starlette routes webhooks, signals and streams past Django."""

import os
import warnings
from datetime import UTC, datetime
from typing import cast

from django.core.asgi import get_asgi_application

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "scheduler_project.settings")
_django = get_asgi_application()
# WhiteNoise reads its files synchronously: they are small, and there is nothing to configure.
warnings.filterwarnings("ignore", "StreamingHttpResponse must consume synchronous iterators")

from django.conf import settings  # noqa: E402
from starlette.middleware import Middleware  # noqa: E402
from starlette.routing import Route, Router  # noqa: E402
from starlette.types import ASGIApp  # noqa: E402

# Loaded here, because all other requests would wait while the first one loads it.
import scheduler_project.urls  # noqa: E402, F401
from agents_app.conf import CONF  # noqa: E402
from gateway_app.access import client_of, refuse_unknown_caller  # noqa: E402
from gateway_app.asgi import BodyLimit, FramingCheck, SecureHeaders  # noqa: E402
from gateway_app.signals import Signals  # noqa: E402
from gateway_app.streams import Hub, Streams  # noqa: E402
from gateway_app.webhooks import Webhooks  # noqa: E402


def _clock() -> datetime:
    return datetime.now(UTC)


_limited_django = BodyLimit(
    cast("ASGIApp", _django),
    CONF.body_seconds,
    refuse=refuse_unknown_caller,
    client_of=client_of,
)
application = Router(
    [
        Route("/webhooks/{path:path}", Webhooks(_clock, CONF.body_seconds)),
        Route("/v1/signals/{name:path}", Signals(_clock, CONF.body_seconds)),
        # Django decides who may read which stream, see gateway_app/streams/requests.py.
        Route(
            "/v1/{path:path}/stream", Streams(_limited_django, Hub(CONF.stream_heartbeat_seconds))
        ),
    ],
    default=_limited_django,
    redirect_slashes=False,
    middleware=[
        Middleware(SecureHeaders, settings.SECURE_HSTS_SECONDS),
        Middleware(FramingCheck),
    ],
)
