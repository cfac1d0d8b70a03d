"""The gateway's entry point for uvicorn: webhooks and signals have doors of their own."""

import os
import warnings
from datetime import UTC, datetime

from django.core.asgi import get_asgi_application

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "scheduler_project.settings")
_django = get_asgi_application()
# WhiteNoise reads its files in a thread's way: they are small, and nobody could act on this.
warnings.filterwarnings("ignore", "StreamingHttpResponse must consume synchronous iterators")

from agents_app.conf import CONF  # noqa: E402
from gateway_app.receive import Webhooks  # noqa: E402
from gateway_app.signals import Signals  # noqa: E402


def _clock() -> datetime:
    return datetime.now(UTC)


application = Webhooks(Signals(_django, _clock, CONF.body_seconds), _clock, CONF.body_seconds)
