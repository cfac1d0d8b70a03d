"""The one shape of everything that goes wrong: {"error": {"code", "message", ...}}."""

from typing import Any, ClassVar

import structlog
from django.core.exceptions import SuspiciousOperation
from django.db import DatabaseError, DataError, IntegrityError
from django.http import Http404, HttpRequest, HttpResponse, JsonResponse
from ninja import NinjaAPI
from ninja.errors import AuthenticationError, HttpError, ValidationError
from pydantic import BaseModel, ConfigDict, Field

from agents_app.errors import DroverError, TriggerParseError
from gateway_app.access.complaints import complaints

log = structlog.get_logger("drover.api")


class ErrorBody(BaseModel):
    model_config = ConfigDict(extra="allow")

    code: str = Field(description="For programs.")
    message: str = Field(description="For people: what was wrong, where, what to do.")


class Problem(BaseModel):
    error: ErrorBody


# What any operation may answer beside what it promises.
ANY_PROBLEM = (400, 401, 403, 404, 409, 413, 429, 503)


def answers(model: Any, status: int = 200) -> dict[int, Any]:
    return {status: model} | dict.fromkeys(ANY_PROBLEM, Problem)


# --- errors of this edge --------------------------------------------------------------------


class Invalid(DroverError):
    """The request itself makes no sense."""

    code = "invalid"


class Forbidden(DroverError):
    """Whoever asks is known, and may not."""

    code = "forbidden"
    http_status = 403


class TenantDisabled(Forbidden):
    code = "tenant_disabled"


class CsrfFailed(Forbidden):
    code = "csrf"


class TooMany(DroverError):
    """More requests than this token may make."""

    code: ClassVar[str] = "rate_limited"
    http_status = 429
    permanent = False

    def __init__(self, retry_after_seconds: int) -> None:
        self.retry_after_seconds = retry_after_seconds
        super().__init__(f"too many requests: try again in {retry_after_seconds} s")


# --- from errors to answers -----------------------------------------------------------------


def problem(status: int, code: str, message: str, **more: Any) -> HttpResponse:
    return JsonResponse({"error": {"code": code, "message": message, **more}}, status=status)


def add_handlers(api: NinjaAPI) -> None:
    for kind, handler in _HANDLERS.items():
        api.add_exception_handler(kind, handler)


def _refusal(_request: HttpRequest, error: DroverError) -> HttpResponse:
    more: dict[str, Any] = {}
    if isinstance(error, TriggerParseError):
        more = {"accepted": error.accepted, "position": error.position}
    response = problem(error.http_status, error.code, str(error), **more)
    if isinstance(error, TooMany):
        response["Retry-After"] = str(error.retry_after_seconds)
    return response


def _invalid(_request: HttpRequest, error: ValidationError) -> HttpResponse:
    fields = complaints(error.errors)
    message = "; ".join(field.text for field in fields)
    listed = [{"field": field.path, "message": field.message} for field in fields]
    return problem(400, Invalid.code, message, fields=listed)


def _http_error(_request: HttpRequest, error: HttpError) -> HttpResponse:
    if error.status_code != 400:
        return problem(error.status_code, "error", str(error))
    # The parser's: the body cannot be read at all.
    return problem(400, "bad_json", f"the body is not JSON in UTF-8: {error.__cause__ or error}")


def _unauthorized(_request: HttpRequest, _error: AuthenticationError) -> HttpResponse:
    response = problem(401, "unauthorized", "missing or invalid bearer token")
    response["WWW-Authenticate"] = "Bearer"
    return response


def _not_found(_request: HttpRequest, _error: Http404) -> HttpResponse:
    return problem(404, "not_found", "there is nothing at this address (/v1/docs lists what is)")


def _unusable(_request: HttpRequest, error: SuspiciousOperation | DataError) -> HttpResponse:
    return problem(400, Invalid.code, " ".join(str(error).split()))


def _conflict(_request: HttpRequest, error: IntegrityError) -> HttpResponse:
    log.info("api.conflict", error=str(error))
    return problem(409, "conflict", "somebody else has just done something like it: look again")


def _unavailable(request: HttpRequest, error: DatabaseError) -> HttpResponse:
    log.warning("api.database_away", path=request.path, error=str(error))
    response = problem(503, "unavailable", "the database does not answer: try again")
    response["Retry-After"] = "1"
    return response


def _failed(request: HttpRequest, error: Exception) -> HttpResponse:
    log.error("api.failed", path=request.path, method=request.method, exc_info=error)
    return problem(500, "internal", "something went wrong here; the log of the gateway says what")


_HANDLERS: dict[type[Exception], Any] = {
    DroverError: _refusal,
    ValidationError: _invalid,
    HttpError: _http_error,
    AuthenticationError: _unauthorized,
    Http404: _not_found,
    SuspiciousOperation: _unusable,
    DataError: _unusable,
    IntegrityError: _conflict,
    DatabaseError: _unavailable,
    Exception: _failed,
}
