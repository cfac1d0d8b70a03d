"""/v1/tokens: the tokens of the caller's tenant; create, list, revoke."""

from typing import Annotated, Literal, cast

from django.http import HttpRequest
from ninja import Query, Router
from ninja.responses import Status as Answer
from pydantic import Field

from agents_app.accounts import tokens
from agents_app.models import ApiToken
from gateway_app.access import TO_ADMINISTER, answers, caller_of
from gateway_app.api.fields import (
    Epoch,
    Payload,
    Seconds,
    Shape,
    Text,
    epoch,
    epoch_or_none,
    moment,
    utc_now,
)
from gateway_app.api.paging import NEXT_CURSOR, PageFilters, page_of
from gateway_app.api.tenant_rows import find_token

router = Router(tags=["tokens"])
Scope = Literal["read", "operate", "admin"]


class TokenShape(Shape):
    id: int
    name: str
    scope: Scope
    created_at: Epoch
    revoked_at: Epoch | None
    expires_at: Epoch | None
    addresses: list[str] = Field(description="Networks that may use the token; empty: all.")


class NewTokenShape(TokenShape):
    token: str = Field(description="Shown only once: only a hash is stored.")


class TokenPage(Shape):
    tokens: list[TokenShape]
    next_cursor: str | None = NEXT_CURSOR


class NewTokenRequest(Payload):
    name: Annotated[
        Text, Field(min_length=1, max_length=100, description="The purpose of the token.")
    ]
    scope: Scope = "read"
    expires_at: Seconds | None = Field(
        None, description="The token is refused from then on; null: never."
    )
    addresses: list[Annotated[Text, Field(max_length=100)]] = Field(
        [],
        max_length=tokens.MOST_ADDRESSES,
        description="Addresses and networks that may use the token; empty: all.",
    )


class RevokedTokenShape(Shape):
    revoked: Literal[True] = True


@router.get("/tokens", response=answers(TokenPage), auth=TO_ADMINISTER)
def list_tokens(request: HttpRequest, filters: Query[PageFilters]) -> TokenPage:
    """Newest first, with revoked tokens."""
    page = page_of(caller_of(request).tenant.tokens.all(), "-pk", filters)
    shapes = [token_shape(token) for token in page.rows]
    return TokenPage(tokens=shapes, next_cursor=page.next_cursor)


@router.post("/tokens", response=answers(NewTokenShape, 201), auth=TO_ADMINISTER)
def create_token(request: HttpRequest, body: NewTokenRequest) -> Answer[NewTokenShape]:
    caller = caller_of(request)
    made = tokens.create_token(
        *(caller.tenant, body.name, body.scope, caller.by, utc_now()),
        expires_at=None if body.expires_at is None else moment(body.expires_at),
        addresses=body.addresses,
    )
    return Answer(201, new_token_shape(made))


@router.delete("/tokens/{int:token_id}", response=answers(RevokedTokenShape), auth=TO_ADMINISTER)
def revoke_token(request: HttpRequest, token_id: int) -> RevokedTokenShape:
    """Permanent, from the next request on; also for the token of this request."""
    caller = caller_of(request)
    tokens.revoke_token(find_token(caller.tenant, token_id), caller.by, utc_now())
    return RevokedTokenShape()


def token_shape(token: ApiToken) -> TokenShape:
    return TokenShape(
        id=token.pk,
        name=token.name,
        scope=cast("Scope", token.scope),
        created_at=epoch(token.created_at),
        revoked_at=epoch_or_none(token.revoked_at),
        expires_at=epoch_or_none(token.expires_at),
        addresses=token.addresses,
    )


def new_token_shape(made: tokens.NewToken) -> NewTokenShape:
    return NewTokenShape(**token_shape(made.row).model_dump(), token=made.secret)
