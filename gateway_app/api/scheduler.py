"""/v1/scheduler and /v1/project: status, pause, resume, stop, and the limit on all runs."""

from typing import Any, Literal, cast

from django.db.models import Count
from django.http import HttpRequest
from ninja import Router
from ninja.responses import Status as Answer
from pydantic import Field

from agents_app.accounts import tenants
from agents_app.database import schema_problem
from agents_app.models import Run, Tenant, WorkItem
from agents_app.runs import control, missing_processes, shutdown
from gateway_app.access import TO_ADMINISTER, TO_OPERATE, TO_READ, answers, caller_of, operator_of
from gateway_app.api.agents import NO_NOTE, PauseRequest
from gateway_app.api.fields import Epoch, Payload, Shape, Whole, epoch_or_none, utc_now
from gateway_app.api.tenant_rows import runs_of, the_scheduler, work_of

router = Router(tags=["scheduler"])
State = Literal["running", "draining", "stopped"]


class SchedulerShape(Shape):
    state: State
    started_at: Epoch | None
    check_count: int
    trigger_count: int
    last_check_at: Epoch | None
    paused: bool
    paused_at: Epoch | None
    pause_note: str
    scale: int | None = Field(description="The limit on all unfinished runs; null: no limit.")
    running: int
    pending: int
    running_by_agent: dict[str, int]
    queue_depth: int
    missing_processes: list[Literal["worker", "beat"]] = Field(
        description="The kinds of processes that do not run; without them no run starts."
    )
    schema_problem: str = Field(description="Why the database does not fit; empty if it does.")


class ProjectScale(Payload):
    scale: Whole | None = Field(ge=1, le=10_000, description="null: no limit.")


class StopRequest(Payload):
    keep_queue: bool = Field(default=True, description="If false, queued work is cleared.")


class StoppingSchedulerShape(Shape):
    state: State
    cleared: int


KEEPING = StopRequest()


@router.get("/scheduler", response=answers(SchedulerShape), auth=TO_READ)
def show_scheduler(request: HttpRequest) -> SchedulerShape:
    return _shown(caller_of(request).tenant)


@router.post("/scheduler/pause", response=answers(SchedulerShape), auth=TO_OPERATE)
def pause_scheduler(request: HttpRequest, body: PauseRequest = NO_NOTE) -> SchedulerShape:
    """For this tenant: scheduled firings are skipped, other work waits. Survives restarts."""
    caller = caller_of(request)
    control.pause_tenant(caller.tenant, caller.by, utc_now(), body.note)
    return _shown(caller.tenant)


@router.post("/scheduler/resume", response=answers(SchedulerShape), auth=TO_OPERATE)
def resume_scheduler(request: HttpRequest) -> SchedulerShape:
    caller = caller_of(request)
    control.resume_tenant(caller.tenant, caller.by, utc_now())
    return _shown(caller.tenant)


@router.post("/scheduler/stop", response=answers(StoppingSchedulerShape, 202), auth=TO_ADMINISTER)
def stop_scheduler(
    request: HttpRequest, body: StopRequest = KEEPING
) -> Answer[StoppingSchedulerShape]:
    """Drains, for all tenants: nothing new starts, running runs finish, then all processes exit.

    Work that is requested meanwhile is queued.
    """
    caller = operator_of(request)
    cleared = shutdown.begin_drain(caller.by, utc_now(), keep_queue=body.keep_queue)
    return Answer(202, StoppingSchedulerShape(state=_state(), cleared=cleared))


@router.post("/project/scale", response=answers(SchedulerShape), auth=TO_OPERATE)
def scale_project(request: HttpRequest, body: ProjectScale) -> SchedulerShape:
    """Takes effect at once; holds until the file of the project changes."""
    caller = caller_of(request)
    tenants.scale_project(caller.tenant, body.scale, caller.by, utc_now())
    return _shown(caller.tenant)


def _shown(tenant: Tenant) -> SchedulerShape:
    tenant.refresh_from_db()
    row = the_scheduler()
    unfinished = runs_of(tenant).filter(slot__isnull=False).order_by()
    by_agent = unfinished.filter(state=Run.State.RUNNING).values_list("agent__name")
    running = dict(by_agent.annotate(Count("pk")))
    return SchedulerShape(
        state=cast("State", row.state),
        started_at=epoch_or_none(row.started_at),
        check_count=row.check_count,
        trigger_count=row.trigger_count,
        last_check_at=epoch_or_none(row.last_check_at),
        paused=tenant.paused_at is not None,
        paused_at=epoch_or_none(tenant.paused_at),
        pause_note=tenant.pause_note,
        scale=tenant.scale,
        running=sum(running.values()),
        pending=unfinished.filter(state=Run.State.PENDING).count(),
        running_by_agent=running,
        queue_depth=work_of(tenant).filter(state=WorkItem.State.QUEUED).count(),
        missing_processes=cast(Any, missing_processes(row, utc_now())),
        schema_problem=schema_problem() or "",
    )


def _state() -> State:
    return cast("State", the_scheduler().state)
