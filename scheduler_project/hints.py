"""Sends hints as Celery messages: one run id each, in the queue of the agent."""

from collections.abc import Iterable
from typing import Any

from scheduler_project.celery import app


class CeleryHints:
    def connect(self) -> None:
        with app.producer_pool.acquire(block=True) as producer:
            assert producer.connection is not None
            producer.connection.ensure_connection(max_retries=1, timeout=2)
            producer.channel  # noqa: B018 - opens it

    def publish(self, run_id: int, queue: str) -> None:
        app.send_task("agents_app.tasks.execute_run", args=[run_id], queue=queue, retry=False)

    def waiting(self, queues: Iterable[str]) -> dict[str, int]:
        with app.connection_for_write() as connection:
            client: Any = connection.default_channel.client  # type: ignore[attr-defined]
            return {queue: int(client.llen(queue)) for queue in queues}
