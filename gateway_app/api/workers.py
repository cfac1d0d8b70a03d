"""/v1/workers: the worker processes of the installation."""

from typing import Any

from django.http import HttpRequest
from ninja import Router

from agents_app.models import DEFAULT_TENANT
from agents_app.reports import read_workers
from gateway_app.access import TO_READ, Forbidden, answers, caller_of
from gateway_app.api.fields import Epoch, Shape, epoch, utc_now

router = Router(tags=["scheduler"])


class WorkerShape(Shape):
    name: str
    host: str
    pid: int
    state: str
    running: int
    concurrency: int
    started_at: Epoch
    lease_until: Epoch


class WorkerList(Shape):
    workers: list[WorkerShape]


@router.get("/workers", response=answers(WorkerList), auth=TO_READ)
def list_workers(request: HttpRequest) -> WorkerList:
    """Workers serve all tenants, so only the default tenant may see them."""
    if caller_of(request).tenant.name != DEFAULT_TENANT:
        raise Forbidden(f"only the tenant {DEFAULT_TENANT!r} may see the workers")
    same = ("name", "host", "pid", "state", "running", "concurrency")
    shown = []
    for worker in read_workers(utc_now()):
        values: dict[str, Any] = {name: getattr(worker, name) for name in same}
        times: Any = {name: epoch(getattr(worker, name)) for name in ("started_at", "lease_until")}
        shown.append(WorkerShape(**values, **times))
    return WorkerList(workers=shown)
