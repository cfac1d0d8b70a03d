"""The Celery application for Flower: only the broker, without Django; and Flower's login."""

from celery import Celery
from flower.views.monitor import Metrics
from tornado.web import authenticated

from agents_app.conf import CONF
from agents_app.installation import redis_url, transport_options

# Flower serves its metrics, which name workers and tasks, to everyone who reaches its port.
Metrics.get = authenticated(Metrics.get)

app = Celery("drover", set_as_current=False)
app.conf.update(
    broker_url=redis_url(CONF),
    broker_transport_options=transport_options(CONF),
    broker_connection_retry_on_startup=True,
    accept_content=["json"],
    task_default_queue="drover",
    control_queue_expires=60,
)
