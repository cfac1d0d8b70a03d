"""/v1/tenants: an operator manages all tenants; another admin sees and rotates its own."""

from typing import Literal

from django.http import HttpRequest
from ninja import Query, Router
from ninja.responses import Status as Answer
from pydantic import Field

from agents_app.accounts import rotate_tokens, tenants
from agents_app.errors import Refused
from agents_app.models import Tenant
from gateway_app.access import TO_ADMINISTER, Caller, answers, caller_of, operator_of
from gateway_app.api.fields import Epoch, Payload, Shape, epoch, epoch_or_none, utc_now
from gateway_app.api.paging import NEXT_CURSOR, PageFilters, page_of
from gateway_app.api.schedules import DeletedShape
from gateway_app.api.tenant_rows import find_tenant, runs_of, tenants_of
from gateway_app.api.tokens import NewTokenShape, new_token_shape
from gateway_app.api.waiting import wait_until_ended

router = Router(tags=["tenants"])
NAME = "a-z, 0-9 and single hyphens between them."


class TenantShape(Shape):
    name: str
    state: Literal["enabled", "disabled"]
    disabled_at: Epoch | None
    paused_at: Epoch | None
    pause_note: str
    scale: int | None
    created_at: Epoch


class NewTenantShape(TenantShape):
    token: NewTokenShape


class TenantPage(Shape):
    tenants: list[TenantShape]
    next_cursor: str | None = NEXT_CURSOR


class NewTenantRequest(Payload):
    name: str = Field(max_length=64, pattern="^[a-z0-9]+(-[a-z0-9]+)*$", description=NAME)


class RotatedShape(Shape):
    tokens: list[NewTokenShape] = Field(description="The new tokens, in place of the valid ones.")


@router.get("/tenants", response=answers(TenantPage), auth=TO_ADMINISTER)
def list_tenants(request: HttpRequest, filters: Query[PageFilters]) -> TenantPage:
    """Ordered by name."""
    page = page_of(tenants_of(caller_of(request)), "name", filters)
    return TenantPage(tenants=[_shape(row) for row in page.rows], next_cursor=page.next_cursor)


@router.post("/tenants", response=answers(NewTenantShape, 201), auth=TO_ADMINISTER)
def create_tenant(request: HttpRequest, body: NewTenantRequest) -> Answer[NewTenantShape]:
    """Creates the tenant and its first token, which is shown only once."""
    caller = operator_of(request)
    tenant, token = tenants.create_tenant(body.name, caller.by, utc_now())
    shape = NewTenantShape(**_shape(tenant).model_dump(), token=new_token_shape(token))
    return Answer(201, shape)


@router.get("/tenants/{name}", response=answers(TenantShape), auth=TO_ADMINISTER)
def show_tenant(request: HttpRequest, name: str) -> TenantShape:
    return _shape(find_tenant(caller_of(request), name))


@router.post("/tenants/{name}/disable", response=answers(TenantShape), auth=TO_ADMINISTER)
def disable_tenant(request: HttpRequest, name: str) -> TenantShape:
    """Its schedules do not fire, its work does not start, its tokens are refused. Runs continue."""
    caller, tenant = _other_tenant(request, name)
    tenants.disable_tenant(tenant, caller.by, utc_now())
    return _reloaded_shape(tenant)


@router.post("/tenants/{name}/enable", response=answers(TenantShape), auth=TO_ADMINISTER)
def enable_tenant(request: HttpRequest, name: str) -> TenantShape:
    """Its schedules fire again at their next time, and its queued work may start."""
    tenant = find_tenant(caller_of(request), name)
    caller = operator_of(request)
    tenants.enable_tenant(tenant, caller.by, utc_now())
    return _reloaded_shape(tenant)


@router.post("/tenants/{name}/rotate", response=answers(RotatedShape), auth=TO_ADMINISTER)
def rotate_tenant(request: HttpRequest, name: str) -> RotatedShape:
    """Replaces each token of the tenant, also the one of this request."""
    caller = caller_of(request)
    made = rotate_tokens(find_tenant(caller, name), caller.by, utc_now())
    return RotatedShape(tokens=[new_token_shape(token) for token in made])


@router.delete("/tenants/{name}", response=answers(DeletedShape), auth=TO_ADMINISTER)
def delete_tenant(request: HttpRequest, name: str) -> DeletedShape:
    """Deletes the tenant with all its objects; running runs are stopped first."""
    caller, tenant = _other_tenant(request, name)
    tenants.close_tenant(tenant, caller.by, utc_now())
    wait_until_ended(runs_of(tenant).filter(slot__isnull=False))
    tenants.delete_tenant(tenant, caller.by, utc_now())
    return DeletedShape()


def _other_tenant(request: HttpRequest, name: str) -> tuple[Caller, Tenant]:
    tenant = find_tenant(caller_of(request), name)
    caller = operator_of(request)
    if tenant.pk == caller.tenant.pk:
        raise Refused(f"{name} is the tenant of the caller: it cannot be disabled or deleted")
    return caller, tenant


def _reloaded_shape(tenant: Tenant) -> TenantShape:
    tenant.refresh_from_db()
    return _shape(tenant)


def _shape(tenant: Tenant) -> TenantShape:
    return TenantShape(
        name=tenant.name,
        state="disabled" if tenant.disabled_at else "enabled",
        disabled_at=epoch_or_none(tenant.disabled_at),
        paused_at=epoch_or_none(tenant.paused_at),
        pause_note=tenant.pause_note,
        scale=tenant.scale,
        created_at=epoch(tenant.created_at),
    )
