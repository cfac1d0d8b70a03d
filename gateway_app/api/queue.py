"""/v1/queue: work items; list, show, drop, clear, restore."""

from django.http import HttpRequest
from ninja import Query, Router
from pydantic import Field

from agents_app.errors import Refused
from agents_app.models import WorkItem
from agents_app.runs import control
from gateway_app.access import TO_OPERATE, TO_READ, answers, caller_of
from gateway_app.api.fields import Payload, Shape, Text, utc_now
from gateway_app.api.paging import NEXT_CURSOR, PageFilters, page_of
from gateway_app.api.run_shapes import WorkShape, WorkState, work_shape
from gateway_app.api.tenant_rows import find_agent, find_work, work_of

router = Router(tags=["queue"])


class WorkPage(Shape):
    items: list[WorkShape]
    next_cursor: str | None = NEXT_CURSOR


class WorkFilters(PageFilters):
    state: WorkState = "queued"
    agent: str | None = None


class ClearQueueRequest(Payload):
    agent: Text | None = Field(
        default=None, description="The queue of this agent; null: all queues."
    )


class ClearedQueueShape(Shape):
    cleared: int


class RestoredQueueShape(Shape):
    restored: int


ALL_QUEUES = ClearQueueRequest()


@router.get("/queue", response=answers(WorkPage), auth=TO_READ)
def list_queue(request: HttpRequest, filters: Query[WorkFilters]) -> WorkPage:
    """Oldest first, which is the order in which they start."""
    tenant = caller_of(request).tenant
    items = work_of(tenant).filter(state=filters.state)
    if filters.agent is not None:
        items = items.filter(agent=find_agent(tenant, filters.agent))
    page = page_of(items, "pk", filters)
    return WorkPage(items=[work_shape(item) for item in page.rows], next_cursor=page.next_cursor)


@router.get("/queue/{int:item_id}", response=answers(WorkShape), auth=TO_READ)
def show_work(request: HttpRequest, item_id: int) -> WorkShape:
    return work_shape(find_work(caller_of(request).tenant, item_id))


@router.post("/queue/{int:item_id}/drop", response=answers(WorkShape), auth=TO_OPERATE)
def drop_work(request: HttpRequest, item_id: int) -> WorkShape:
    """Removes a queued work item permanently."""
    caller = caller_of(request)
    item = find_work(caller.tenant, item_id)
    dropped = control.drop_work(item, caller.by, utc_now())
    item.refresh_from_db()
    if not dropped:
        raise Refused(f"work item {item.pk} is {item.state}: only queued work can be dropped")
    return work_shape(item)


@router.post("/queue/clear", response=answers(ClearedQueueShape), auth=TO_OPERATE)
def clear_queue(request: HttpRequest, body: ClearQueueRequest = ALL_QUEUES) -> ClearedQueueShape:
    """Removes all queued work; restore puts it back."""
    caller = caller_of(request)
    items = work_of(caller.tenant).filter(state=WorkItem.State.QUEUED)
    if body.agent is not None:
        items = items.filter(agent=find_agent(caller.tenant, body.agent))
    return ClearedQueueShape(cleared=control.clear_queue(items, caller.by, utc_now()))


@router.post("/queue/restore", response=answers(RestoredQueueShape), auth=TO_OPERATE)
def restore_queue(request: HttpRequest) -> RestoredQueueShape:
    """Puts cleared work back into its queue, in its old order."""
    caller = caller_of(request)
    return RestoredQueueShape(restored=control.restore_cleared(caller.tenant, caller.by, utc_now()))
