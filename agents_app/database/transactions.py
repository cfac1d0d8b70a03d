"""How changes become durable: one transaction each, or many changes in one commit.

SQLite has one writer at a time. Threads that wait for its lock sleep in steps and starve each
other, so in each process one thread commits the changes of all threads, together.
"""

import os
import threading
from collections.abc import Callable, Sequence
from queue import Empty, SimpleQueue
from typing import Any, Generic, TypeVar, cast

import structlog
from django.db import (
    InterfaceError,
    OperationalError,
    close_old_connections,
    connection,
    transaction,
)

from agents_app.database.sql import ENGINE

log = structlog.get_logger("drover.commit")
T = TypeVar("T")
Item = TypeVar("Item")
Result = TypeVar("Result")
# The result of an item, or the error for which it was not stored.
Outcome = tuple[Any, BaseException | None]
Reply = SimpleQueue[Outcome]
Change = tuple[Callable[[], Any], Reply]
MAX_ITEMS_IN_ONE_COMMIT = 64
# Errors of the database itself: it is away, locked or has lost the connection.
UNAVAILABLE = (OperationalError, InterfaceError)


def in_transaction(change: Callable[[], T]) -> T:
    """Execute `change` in a transaction and return its result when it is on disk.

    Inside an open transaction `change` becomes a part of it. `change` may be executed twice, the
    first time rolled back: it must change nothing outside the database.
    """
    if ENGINE.wrapper().in_atomic_block:
        return change()
    if ENGINE.groups_commits:
        return _commit_in_group(change)
    with transaction.atomic():
        return change()


def repeat_after_lost_connection(change: Callable[[], T]) -> T:
    """Execute `change`, which opens its own transaction, again if the connection was lost.

    The connection may be lost during the commit, so the second execution must recognize what the
    first one has stored.
    """
    try:
        return change()
    except UNAVAILABLE:
        connection.close()
        if not ENGINE.connection_can_be_lost:
            raise
        return change()


# --- group commit ---------------------------------------------------------------------------


class GroupCommit(Generic[Item, Result]):
    """A thread that stores the items of many callers, all that have arrived in one commit.

    `commit` stores a batch, all items or none, and returns a result for each. `answer` receives
    the batch with the outcome of each item. A batch that fails is repeated item by item, which
    is cheaper than a savepoint for each item because an item hardly ever fails. An error of the
    types `batch_errors` is not repeated but the outcome of every item.
    """

    def __init__(
        self,
        name: str,
        commit: Callable[[list[Item]], Sequence[Result]],
        answer: Callable[[list[Item], Sequence[Outcome]], None],
        *,
        batch_errors: tuple[type[Exception], ...] = (),
        size_of: Callable[[Item], int] = lambda _: 0,
        max_size: int = 1,
    ) -> None:
        self.name = name
        self._commit = commit
        self._answer = answer
        self._batch_errors = batch_errors
        self._size_of = size_of
        self._max_size = max_size
        self._waiting: SimpleQueue[Item | None] = SimpleQueue()
        self._starting = threading.Lock()
        self._thread: threading.Thread | None = None

    @property
    def waiting(self) -> int:
        """The number of items that are not in a batch yet."""
        return self._waiting.qsize()

    def put(self, item: Item) -> None:
        if self._thread is None:
            self._start()
        self._waiting.put(item)

    def stop(self) -> None:
        """End the thread after the items that have arrived; the next item starts it again."""
        with self._starting:
            thread, self._thread = self._thread, None
        if thread is not None:
            self._waiting.put(None)
            thread.join()

    def _start(self) -> None:
        with self._starting:
            if self._thread is None:
                self._thread = threading.Thread(target=self._work, name=self.name, daemon=True)
                self._thread.start()

    def _work(self) -> None:
        running = True
        while running:
            batch, running = self._next_batch()
            if batch:
                self.store(batch)
        connection.close()

    def _next_batch(self) -> tuple[list[Item], bool]:
        """The items that have arrived, at least one, and False if the thread is to end."""
        batch: list[Item] = []
        size = 0
        while len(batch) < MAX_ITEMS_IN_ONE_COMMIT and size < self._max_size:
            try:
                item = self._waiting.get(block=not batch)
            except Empty:
                break
            if item is None:
                return batch, False
            batch.append(item)
            size += self._size_of(item)
        return batch, True

    def store(self, batch: list[Item]) -> None:
        try:
            results = self._commit(batch)
        except BaseException as error:
            self._fail(batch, error)
        else:
            # Not before the commit: a caller that has an answer relies on it.
            self._answer(batch, [(result, None) for result in results])

    def _fail(self, batch: list[Item], error: BaseException) -> None:
        close_old_connections()
        if len(batch) == 1 or isinstance(error, self._batch_errors):
            self._answer(batch, [(None, error)] * len(batch))
            return
        for item in batch:
            self.store([item])


# --- the group commit of `in_transaction` ---------------------------------------------------


def _commit_changes(batch: list[Change]) -> list[Any]:
    committed: list[bool] = []
    results: list[Any] = []
    try:
        with transaction.atomic():
            # The first callback after the commit: a later one that raises does not undo it.
            transaction.on_commit(lambda: committed.append(True))
            results = [change() for change, _ in batch]
    except BaseException:
        if not committed:
            raise
        log.exception("commit.listener_failed")
    return results


def _reply(batch: list[Change], outcomes: Sequence[Outcome]) -> None:
    for (_, reply), outcome in zip(batch, outcomes, strict=True):
        reply.put(outcome)


def _new_writer() -> GroupCommit[Change, Any]:
    return GroupCommit("group-commit", _commit_changes, _reply)


_writer = _new_writer()
# One queue for the replies to a thread: a Future would cost more than the change.
_replies = threading.local()


def _forget_writer() -> None:
    """A forked child has the object but not its thread."""
    global _writer
    _writer = _new_writer()


os.register_at_fork(after_in_child=_forget_writer)


def _commit_in_group(change: Callable[[], T]) -> T:
    reply: Reply = _replies.__dict__.setdefault("mine", SimpleQueue())
    _writer.put((change, reply))
    result, error = reply.get()
    if error is not None:
        raise error
    return cast("T", result)
