"""The gateway's entry point for uvicorn: webhooks, signals and streams have doors of their own."""

import os
import warnings
from datetime import UTC, datetime

from django.core.asgi import get_asgi_application

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "scheduler_project.settings")
_django = get_asgi_application()
# WhiteNoise reads its files in a thread's way: they are small, and nobody could act on this.
warnings.filterwarnings("ignore", "StreamingHttpResponse must consume synchronous iterators")

from django.conf import settings  # noqa: E402

# Not within the first request, which all others would wait for.
import scheduler_project.urls  # noqa: E402, F401
from agents_app.conf import CONF  # noqa: E402
from gateway_app.asgi import (  # noqa: E402
    Bounded,
    OneLength,
    SecureHeaders,
)
from gateway_app.signals import Signals  # noqa: E402
from gateway_app.streams import (  # noqa: E402
    Hub,
    Streams,
)
from gateway_app.webhooks import Webhooks  # noqa: E402


def _clock() -> datetime:
    return datetime.now(UTC)


_bounded = Bounded(_django, CONF.body_seconds)
_streams = Streams(_bounded, Hub(CONF.stream_heartbeat_seconds))
_signals = Signals(_streams, _clock, CONF.body_seconds)
_webhooks = Webhooks(_signals, _clock, CONF.body_seconds)
application = SecureHeaders(OneLength(_webhooks), settings.SECURE_HSTS_SECONDS)
