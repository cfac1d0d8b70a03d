"""Sends hints as Celery messages: one run id each, in the queue of the agent."""

from collections.abc import Iterable
from typing import Any

from scheduler_project.celery import app

# One attempt, and one second for each reply: with Celery's defaults the sweep would wait 6 s for a
# server that is down, and dead workers would keep their runs for as long.
_WITHOUT_RETRIES = {"max_retries": 0, "socket_timeout": 1, "socket_connect_timeout": 1}


class CeleryHints:
    def connect(self) -> None:
        with app.producer_pool.acquire(block=True) as producer:
            assert producer.connection is not None
            producer.connection.ensure_connection(max_retries=1, timeout=2)
            producer.channel  # noqa: B018 - opens it

    def publish(self, run_id: int, queue: str) -> None:
        app.send_task("agents_app.tasks.execute_run", args=[run_id], queue=queue, retry=False)

    def waiting(self, queues: Iterable[str]) -> dict[str, int]:
        with app.connection_for_write(transport_options=_WITHOUT_RETRIES) as connection:
            client: Any = connection.default_channel.client  # type: ignore[attr-defined]
            return {queue: int(client.llen(queue)) for queue in queues}
