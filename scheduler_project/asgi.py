"""The gateway's entry point for uvicorn: webhooks go to their own door, all else to Django."""

import os
import warnings
from datetime import UTC, datetime

from django.core.asgi import get_asgi_application

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "scheduler_project.settings")
_django = get_asgi_application()
# WhiteNoise reads its files in a thread's way: they are small, and nobody could act on this.
warnings.filterwarnings("ignore", "StreamingHttpResponse must consume synchronous iterators")

from django.conf import settings  # noqa: E402

from agents_app.conf import CONF  # noqa: E402
from gateway_app.bounded import Bounded  # noqa: E402
from gateway_app.framing import OneLength  # noqa: E402
from gateway_app.headers import SecureHeaders  # noqa: E402
from gateway_app.receive import Webhooks  # noqa: E402

_bounded = Bounded(_django, CONF.body_seconds)
_webhooks = Webhooks(_bounded, lambda: datetime.now(UTC), CONF.body_seconds)
application = SecureHeaders(OneLength(_webhooks), settings.SECURE_HSTS_SECONDS)
