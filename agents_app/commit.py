"""How changes become durable: one transaction each, on SQLite many of them in one commit.

SQLite has one writer at a time. Threads that queue for its lock sleep in steps and starve each
other, so in each process one thread does all writing and commits what waits together.
"""

import os
import threading
from collections.abc import Callable
from concurrent.futures import Future
from queue import Empty, SimpleQueue
from typing import Any, TypeVar

from django.db import close_old_connections, connection, transaction

T = TypeVar("T")
Change = tuple[Callable[[], Any], "Future[Any]"]
MOST_IN_ONE_COMMIT = 64


def in_transaction(change: Callable[[], T]) -> T:
    """Run `change` in a transaction and return when it is on disk."""
    if connection.in_atomic_block:
        return change()
    if connection.vendor == "sqlite":
        return _writer().submit(change)
    with transaction.atomic():
        return change()


class GroupCommit:
    """The one writing thread of a process."""

    def __init__(self) -> None:
        self.pid = os.getpid()
        self._waiting: SimpleQueue[Change] = SimpleQueue()
        threading.Thread(target=self._work, name="group-commit", daemon=True).start()

    def submit(self, change: Callable[[], T]) -> T:
        future: Future[T] = Future()
        self._waiting.put((change, future))
        return future.result()

    def _work(self) -> None:
        while True:
            batch = [self._waiting.get()]
            while len(batch) < MOST_IN_ONE_COMMIT:
                try:
                    batch.append(self._waiting.get_nowait())
                except Empty:
                    break
            _commit(batch)


def _commit(batch: list[Change]) -> None:
    done: list[tuple[Future[Any], Any, BaseException | None]] = []
    try:
        with transaction.atomic():
            for change, future in batch:
                done.append((future, *_attempt(change, alone=len(batch) == 1)))
    except BaseException as error:
        close_old_connections()
        for _, future in batch:
            future.set_exception(error)
        return
    # Only now is it true that the changes happened: tell those who wait.
    for future, result, failure in done:
        if failure is None:
            future.set_result(result)
        else:
            future.set_exception(failure)


def _attempt(change: Callable[[], Any], *, alone: bool) -> tuple[Any, BaseException | None]:
    """One change of several is undone by itself when it fails; the others still count."""
    if alone:
        return change(), None
    try:
        with transaction.atomic():
            return change(), None
    except Exception as error:
        return None, error


_current: GroupCommit | None = None
_making = threading.Lock()


def _writer() -> GroupCommit:
    global _current
    with _making:
        # A forked child has the object but not its thread.
        if _current is None or _current.pid != os.getpid():
            _current = GroupCommit()
        return _current
