"""How changes become durable: one transaction each, on SQLite many of them in one commit.

SQLite has one writer at a time. Threads that queue for its lock sleep in steps and starve each
other, so in each process one thread does all writing and commits what waits together.
"""

import os
import threading
from collections.abc import Callable
from queue import Empty, SimpleQueue
from typing import Any, TypeVar, cast

import structlog
from django.db import close_old_connections, connection, transaction

from agents_app.database.sql import ENGINE

log = structlog.get_logger("drover.commit")
T = TypeVar("T")
Reply = SimpleQueue[tuple[Any, BaseException | None]]
Change = tuple[Callable[[], Any], Reply]
MOST_IN_ONE_COMMIT = 64


def in_transaction(change: Callable[[], T]) -> T:
    """Run `change` in a transaction and return when it is on disk.

    It may be run twice, the first time undone: outside the database it must change nothing.
    """
    if connection.in_atomic_block:
        return change()
    if ENGINE.groups_commits:
        return _writer().submit(change)
    with transaction.atomic():
        return change()


class GroupCommit:
    """The one writing thread of a process."""

    def __init__(self) -> None:
        self.pid = os.getpid()
        self._waiting: SimpleQueue[Change] = SimpleQueue()
        self._replies = threading.local()
        threading.Thread(target=self._work, name="group-commit", daemon=True).start()

    def submit(self, change: Callable[[], T]) -> T:
        # One queue for the answers to a thread: a Future would cost more than the change.
        reply: Reply = self._replies.__dict__.setdefault("mine", SimpleQueue())
        self._waiting.put((change, reply))
        result, error = reply.get()
        if error is not None:
            raise error
        return cast("T", result)

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
    committed: list[bool] = []
    try:
        with transaction.atomic():
            # The first to hear of the commit: a later listener that raises does not undo it.
            transaction.on_commit(lambda: committed.append(True))
            results = [change() for change, _ in batch]
    except BaseException as error:
        if not committed:
            _undone(batch, error)
            return
        log.exception("commit.listener_failed")
    # Only now is it true that the changes happened: tell those who wait.
    for (_, reply), result in zip(batch, results, strict=True):
        reply.put((result, None))


def _undone(batch: list[Change], error: BaseException) -> None:
    """One that fails alone has failed; of several, each is tried again by itself.

    Cheaper than a savepoint around every change, because hardly any ever fails.
    """
    if len(batch) == 1:
        close_old_connections()
        batch[0][1].put((None, error))
        return
    for each in batch:
        _commit([each])


_current: GroupCommit | None = None
_making = threading.Lock()


def _writer() -> GroupCommit:
    global _current
    with _making:
        # A forked child has the object but not its thread.
        if _current is None or _current.pid != os.getpid():
            _current = GroupCommit()
        return _current
