"""/v1/runs: list, show, stop, rerun, tree of calls; logs.py has the output."""

from django.http import HttpRequest
from ninja import Query, Router
from ninja.responses import Status as Answer
from pydantic import Field

from agents_app.runs import control, dispatch
from agents_app.signals import calls
from gateway_app.access import TO_OPERATE, TO_READ, answers, caller_of
from gateway_app.api.fields import Seconds, Shape, moment, utc_now
from gateway_app.api.paging import NEXT_CURSOR, PageFilters, page_of
from gateway_app.api.run_shapes import (
    AcceptedWorkShape,
    CallShape,
    RunShape,
    RunState,
    TriggerName,
    accepted_work,
    call_shape,
    run_shape,
)
from gateway_app.api.tenant_rows import find_agent, find_run, find_schedule, find_work, runs_of
from gateway_app.api.views import trace_of

router = Router(tags=["runs"])


class RunPage(Shape):
    runs: list[RunShape]
    next_cursor: str | None = NEXT_CURSOR


class RunFilters(PageFilters):
    limit: int = Field(200, ge=1, le=200)
    since: Seconds | None = Field(None, description="Started at this time or later.")
    state: RunState | None = None
    agent: str | None = None
    trigger: TriggerName | None = None
    schedule_id: int | None = Field(None, ge=1, lt=2**63)
    work_item_id: int | None = Field(None, ge=1, lt=2**63)


@router.get("/runs", response=answers(RunPage), auth=TO_READ)
def list_runs(request: HttpRequest, filters: Query[RunFilters]) -> RunPage:
    """Newest first."""
    tenant = caller_of(request).tenant
    runs = runs_of(tenant)
    if filters.since is not None:
        runs = runs.filter(started_at__gte=moment(filters.since))
    if filters.agent is not None:
        runs = runs.filter(agent=find_agent(tenant, filters.agent))
    if filters.schedule_id is not None:
        runs = runs.filter(schedule=find_schedule(tenant, filters.schedule_id))
    if filters.work_item_id is not None:
        runs = runs.filter(work_item=find_work(tenant, filters.work_item_id))
    for name in ("state", "trigger"):
        if (value := getattr(filters, name)) is not None:
            runs = runs.filter(**{name: value})
    page = page_of(runs, "-pk", filters)
    return RunPage(runs=[run_shape(run) for run in page.rows], next_cursor=page.next_cursor)


@router.get("/runs/{int:run_id}", response=answers(RunShape), auth=TO_READ)
def show_run(request: HttpRequest, run_id: int) -> RunShape:
    return run_shape(find_run(caller_of(request).tenant, run_id))


@router.get("/runs/{int:run_id}/tree", response=answers(CallShape), auth=TO_READ)
def show_tree(request: HttpRequest, run_id: int) -> CallShape:
    """The tree of calls of the run, from its root."""
    return call_shape(calls.call_tree(find_run(caller_of(request).tenant, run_id)))


@router.post("/runs/{int:run_id}/stop", response=answers(RunShape), auth=TO_OPERATE)
def stop_run(request: HttpRequest, run_id: int) -> RunShape:
    """Stops all processes of the run: with SIGTERM, after the grace period with SIGKILL."""
    caller = caller_of(request)
    control.stop_run(find_run(caller.tenant, run_id), caller.by, utc_now())
    return run_shape(find_run(caller.tenant, run_id))


@router.post("/runs/{int:run_id}/rerun", response=answers(AcceptedWorkShape, 202), auth=TO_OPERATE)
def rerun_run(request: HttpRequest, run_id: int) -> Answer[AcceptedWorkShape]:
    """Queues new work with the same input."""
    caller = caller_of(request)
    run = find_run(caller.tenant, run_id)
    return Answer(
        202, accepted_work(dispatch.enqueue_rerun(run, caller.by, utc_now(), trace_of(request)))
    )
