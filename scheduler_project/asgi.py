"""The gateway's entry point for uvicorn: webhooks go to their own door, all else to Django."""

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

application = Webhooks(_django, lambda: datetime.now(UTC), CONF.body_seconds)
