"""/v1/locks: the locks that agents hold; list, break."""

from django.http import HttpRequest
from ninja import Query, Router

from agents_app.errors import NotFound
from agents_app.models import ResourceLock
from agents_app.runs import control
from gateway_app.access import TO_OPERATE, TO_READ, answers, caller_of
from gateway_app.api.fields import Epoch, Shape, epoch, utc_now
from gateway_app.api.paging import NEXT_CURSOR, PageFilters, page_of
from gateway_app.api.tenant_rows import find_lock, locks_of

router = Router(tags=["locks"])


class LockShape(Shape):
    id: int
    uri: str
    holder: str
    run_id: int | None
    held_since: Epoch
    expires_at: Epoch


class LockPage(Shape):
    locks: list[LockShape]
    next_cursor: str | None = NEXT_CURSOR


@router.get("/locks", response=answers(LockPage), auth=TO_READ)
def list_locks(request: HttpRequest, filters: Query[PageFilters]) -> LockPage:
    """Oldest first. The id of a lock is the fencing token of its holder."""
    page = page_of(locks_of(caller_of(request).tenant), "pk", filters)
    return LockPage(locks=[_shape(lock) for lock in page.rows], next_cursor=page.next_cursor)


@router.delete("/locks/{int:lock_id}", response=answers(LockShape), auth=TO_OPERATE)
def break_lock(request: HttpRequest, lock_id: int) -> LockShape:
    """Removes the lock. The holder is not notified and may still act as if it held the lock."""
    caller = caller_of(request)
    lock = find_lock(caller.tenant, lock_id)
    shape = _shape(lock)
    if not control.break_lock(lock, caller.by, utc_now()):
        raise NotFound("there is no such lock")
    return shape


def _shape(lock: ResourceLock) -> LockShape:
    return LockShape(
        id=lock.pk,
        uri=lock.uri,
        holder=lock.holder,
        run_id=lock.run_id,
        held_since=epoch(lock.held_since),
        expires_at=epoch(lock.expires_at),
    )
