"""The gateway's entry point for uvicorn: webhooks and streams have doors of their own."""

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
from gateway_app.streams.door import Streams  # noqa: E402
from gateway_app.streams.hub import Hub  # noqa: E402

_streams = Streams(_django, Hub(CONF.stream_heartbeat_seconds))
application = Webhooks(_streams, lambda: datetime.now(UTC), CONF.body_seconds)
