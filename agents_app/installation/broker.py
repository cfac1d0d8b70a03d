"""Transport options of Celery for Redis, for the project and for Flower, which has no Django."""

from typing import Any

from agents_app.conf import Conf


def transport_options(conf: Conf) -> dict[str, Any]:
    return {
        "global_keyprefix": conf.redis_prefix,
        # One list per queue instead of four: four times fewer keys in every blocking read.
        "priority_steps": [0],
        "socket_timeout": 5,
        "socket_connect_timeout": 2,
        "socket_keepalive": True,
        "health_check_interval": 10,
    }
